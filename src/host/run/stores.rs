//! Stores that the emulator counted, held against what a kernel promises: each element of its outputs once, and inputs never.

use ptx_emulator::{GlobalMemory, MemoryError};

use super::bind::{Addresses, Bound};
use super::runnable::Stores;

/// Lets the memory count the stores to the buffers that a kernel promises something of.
pub(super) fn count(
    bound: &Bound<'_>,
    memory: &mut GlobalMemory,
    addresses: &Addresses,
) -> Result<(), MemoryError> {
    let promised = bound.promised.iter().zip(&addresses.buffers);
    promised
        .filter(|(promised, _)| promised.is_some())
        .try_for_each(|(_, address)| memory.count_stores(*address))
}

/// What was stored otherwise than promised, a sentence for each buffer.
pub(super) fn miscounted(
    bound: &Bound<'_>,
    memory: &GlobalMemory,
    addresses: &Addresses,
) -> Result<Vec<String>, MemoryError> {
    let mut found = Vec::new();
    let buffers = bound.buffers.iter().zip(&bound.promised);
    for (((name, buffer), promised), address) in buffers.zip(&addresses.buffers) {
        if let Some((stores, bytes)) = promised {
            let counts = memory.stores(*address, buffer.len)?;
            let bytes = usize::try_from(*bytes).unwrap_or(usize::MAX);
            found.extend(fault(name, *stores, buffer.element.bytes(), bytes, &counts));
        }
    }
    Ok(found)
}

/// What is wrong with the stores to a buffer, whose first `bytes` bytes are its elements, of `each` bytes.
fn fault(name: &str, stores: Stores, each: usize, bytes: usize, counts: &[u8]) -> Option<String> {
    let wanted = |at: usize| u8::from(stores != Stores::Never && at < bytes);
    let wrong = |(at, count): &(usize, &u8)| match stores {
        Stores::AtMostOnce => **count > wanted(*at),
        _ => **count != wanted(*at),
    };
    let mut elements: Vec<usize> = counts
        .iter()
        .enumerate()
        .filter(wrong)
        .map(|(at, _)| at / each)
        .collect();
    elements.dedup();
    let first = *elements.first()?;
    let times = counts.iter().skip(first * each).take(each).max();
    let times = match times.copied().unwrap_or(0) {
        0 | 1 if first * each < bytes && stores != Stores::Never => {
            "not stored, or in part".to_owned()
        }
        u8::MAX => "stored 255 times or more".to_owned(),
        1 => "stored".to_owned(),
        n => format!("stored {n} times"),
    };
    let promise = match stores {
        Stores::Never => "is an input, which is not stored to",
        _ if first * each >= bytes => "ends before it",
        Stores::AtMostOnce => "is an output of which each element is stored at most once",
        Stores::Once => "is an output, of which each element is stored once",
    };
    let more = match elements.len() - 1 {
        0 => String::new(),
        n => format!(", and {n} more elements are wrong"),
    };
    Some(format!(
        "element {first} of `{name}` was {times}: `{name}` {promise}{more}"
    ))
}
