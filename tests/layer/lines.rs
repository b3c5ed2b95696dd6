//! Refusals and texts name the lines of the author's program.

use super::vectors;
use super::{ARCH, Done, Result, layout, refusal, swizzled};
use tilewright::codegen::ir::{Cmp, Element, Kernel, Shuffle};
use tilewright::codegen::value::{F32, Predicate};
use tilewright::codegen::view::Partition;

/// The line above, as messages have it.
#[track_caller]
fn above() -> String {
    format!("lines.rs:{}", std::panic::Location::caller().line() - 1)
}

/// The message of a refusal has every one of the lines.
fn names(kernel: Kernel, lines: &[String]) {
    let message = refusal(kernel).to_string();
    for line in lines {
        assert!(message.contains(line), "{line} is not in: {message}");
    }
    assert!(!message.contains("%r"), "{message}");
}

/// Through shared memory to another thread.
fn across() -> Result<(Kernel, [Partition; 4])> {
    let (mut k, x, y) = vectors(Element::F32, Element::F32)?;
    let tile = k.shared("tile", Element::F32, &swizzled("128:1"))?;
    let thread = k.thread();
    let own = layout("(128,1):(1,0)");
    let others = layout("((64,2),1):((2,1),0)");
    let shares = [
        x.partition(&mut k, &own, thread)?,
        y.partition(&mut k, &own, thread)?,
        tile.partition(&mut k, &own, thread)?,
        tile.partition(&mut k, &others, thread)?,
    ];
    Ok((k, shares))
}

#[test]
fn a_race_names_both_accesses() -> Result {
    let (mut k, [x, y, put, take]) = across()?;
    k.copy(&x, &put)?;
    let written = above();
    k.copy(&take, &y)?;
    let read = above();
    names(k, &[written, read]);
    Ok(())
}

#[test]
fn a_barrier_of_some_threads_is_named() -> Result {
    let (mut k, [x, y, ..]) = across()?;
    k.copy(&x, &y)?;
    let (thread, half) = (k.thread(), k.constant(32));
    let p = Predicate::of(&mut k, thread, Cmp::Lt, half);
    let mut line = String::new();
    k.when(p, |k| {
        k.barrier();
        line = above();
        Done::Ok(())
    })?;
    names(k, &[line]);
    Ok(())
}

#[test]
fn a_shuffle_of_some_lanes_is_named() -> Result {
    let (mut k, [x, y, ..]) = across()?;
    k.copy(&x, &y)?;
    let (lane, half) = (k.lane(), k.constant(16));
    let p = Predicate::of(&mut k, lane, Cmp::Lt, half);
    let mut line = String::new();
    k.when(p, |k| {
        let one = F32::from(1.0);
        let _ = one.shuffle(k, Shuffle::Down, 1u32);
        line = above();
        Done::Ok(())
    })?;
    names(k, &[line]);
    Ok(())
}

#[test]
fn an_output_that_is_written_twice_names_its_stores() -> Result {
    let (mut k, [x, y, ..]) = across()?;
    k.copy(&x, &y)?;
    let first = above();
    k.copy(&x, &y)?;
    let second = above();
    names(k, &[first, second]);
    Ok(())
}

/// A function that writes part of a kernel is named by the line in it.
#[test]
fn functions_have_lines_of_their_own() -> Result {
    fn part(k: &mut Kernel, from: &Partition, to: &Partition) -> Result<String> {
        k.copy(from, to)?;
        Ok(above())
    }
    let (mut k, [x, y, put, take]) = across()?;
    let line = part(&mut k, &x, &put)?;
    part(&mut k, &take, &y)?;
    names(k, &[line]);
    Ok(())
}

#[test]
fn texts_have_lines_on_request_and_no_other_change() -> Result {
    let text = |lines: bool| -> Result<(String, u32)> {
        let (mut k, [x, y, put, take]) = across()?;
        if lines {
            k.lines();
        }
        k.copy(&x, &put)?;
        k.barrier();
        k.copy(&take, &y)?;
        Ok((k.build(ARCH).map_err(|e| e.to_string())?.ptx, line!() - 1))
    };
    let (plain, _) = text(false)?;
    let (with, line) = text(true)?;
    assert!(!plain.contains(".loc"));
    assert!(
        with.contains("lines.rs\"") && with.contains(&format!("{} 11\n    bar.sync 0;", line - 1)),
        "{with}"
    );
    let without: Vec<&str> = with
        .lines()
        .filter(|l| !l.contains(".loc") && !l.contains(".file"))
        .collect();
    assert_eq!(without, plain.lines().collect::<Vec<_>>());
    Ok(())
}

#[test]
fn what_is_refused_can_be_looked_at() -> Result {
    let wrong = || -> Result<Kernel> {
        let (mut k, [x, y, put, take]) = across()?;
        k.copy(&x, &put)?;
        k.copy(&take, &y)?;
        Ok(k)
    };
    let text = wrong()?.unproven_text(ARCH).map_err(|e| e.to_string())?;
    assert!(text.contains("st.shared") && !text.contains("bar.sync"));
    assert!(wrong()?.build(ARCH).is_err());
    Ok(())
}
