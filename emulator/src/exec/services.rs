//! What the system offers kernels as functions: `vprintf`, `malloc`, `free`, `__assertfail`.

use std::fmt::Write;

use super::local::little;
use super::mem::{get_lane, lanes_of, set_lane};
use super::warp::Warp;
use super::{Context, Env, Site};
use crate::ir::{Call, Service, Slot};
use crate::launch::MAX_PRINTED;
use crate::report::FindingKind;
use crate::windows::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW};

/// Longest string that is read from memory.
const MAX_STRING: u64 = 1 << 16;

/// Calls `service` in the active lanes.
#[inline(never)]
pub(super) fn serve(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    service: Service,
    call: &Call,
    active: u32,
) {
    for l in lanes_of(active) {
        let site = Site {
            pc,
            warp: w.index,
            lanes: 1 << l,
            address: None,
        };
        let arg = |w: &Warp, k: usize| call.args.get(k).map_or(0, |s| read_slot(w, *s, l));
        match service {
            Service::Printf => {
                let (format, args) = (arg(w, 0), arg(w, 1));
                let printed = print(cx, env, w, l, format, args);
                let count = if let Ok(text) = printed {
                    let n = text.len() as u64;
                    keep(env, text);
                    n
                } else {
                    env.report(cx, FindingKind::OutOfBounds, site, &|| {
                        format!("lane {l} prints from memory that is not there")
                    });
                    u64::MAX
                };
                result(w, call, l, count);
            }
            Service::Malloc => {
                let bytes = arg(w, 0);
                let address = cx.memory.heap().map_or(0, |h| h.malloc(bytes));
                result(w, call, l, address);
            }
            Service::Free => {
                let address = arg(w, 0);
                if !cx.memory.heap().is_some_and(|h| h.free(address)) {
                    let site = Site {
                        address: Some(address),
                        ..site
                    };
                    env.report(cx, FindingKind::BadOperand, site, &|| {
                        format!("lane {l} frees {address:#x}, which malloc did not return or which is free already")
                    });
                }
            }
            Service::Assert => {
                let text = |w: &Warp, env: &Env, k: usize| {
                    let mut view = View {
                        cx,
                        env,
                        w,
                        lane: l,
                        hint: 0,
                    };
                    view.string(arg(w, k)).map_or_else(
                        |_| "?".to_owned(),
                        |s| String::from_utf8_lossy(&s).into_owned(),
                    )
                };
                let (what, file, function) = (text(w, env, 0), text(w, env, 1), text(w, env, 3));
                let line = arg(w, 2);
                let thread = w.index * 32 + l as u32;
                env.report(cx, FindingKind::Assertion, site, &|| {
                    format!("{file}:{line}: {function}: thread {thread}: assertion `{what}` failed")
                });
                env.abort = true;
            }
        }
    }
}

fn result(w: &mut Warp, call: &Call, lane: usize, value: u64) {
    match call.returns.first() {
        Some(Slot::Register { reg, .. }) => set_lane(w, *reg, lane, value, 8, false),
        Some(Slot::Memory { offset, bytes }) => {
            let at = u64::from(w.frames[lane] + offset);
            w.local_store(lane, at, (*bytes).min(8), value);
        }
        None => {}
    }
}

fn read_slot(w: &Warp, slot: Slot, lane: usize) -> u64 {
    match slot {
        Slot::Register { reg, .. } => get_lane(w, reg, lane),
        Slot::Memory { offset, bytes } => {
            let at = u64::from(w.frames[lane] + offset);
            w.local_load(lane, at, bytes.min(8)).unwrap_or(0)
        }
    }
}

fn keep(env: &mut Env, text: Vec<u8>) {
    if env.printed_bytes >= MAX_PRINTED {
        return;
    }
    env.printed_bytes += text.len();
    let block = env.block;
    match env.printed.last_mut() {
        Some((b, all)) if *b == block => all.extend(text),
        _ => env.printed.push((block, text)),
    }
}

/// The address is nowhere.
struct Nowhere;

/// The memory of a lane, at generic addresses.
struct View<'a> {
    cx: &'a Context<'a>,
    env: &'a Env,
    w: &'a Warp,
    lane: usize,
    /// The last allocation of global memory.
    hint: u32,
}

impl View<'_> {
    /// One byte.
    fn byte(&mut self, at: u64) -> Result<u8, Nowhere> {
        let within = |base: u64| Some(at.wrapping_sub(base)).filter(|o| *o < WINDOW);
        let found = if let Some(o) = within(LOCAL_WINDOW) {
            self.w.local_load(self.lane, o, 1)
        } else if let Some(o) = within(SHARED_WINDOW) {
            let (env, offset) = (self.env, (o as u32).wrapping_sub(self.env.start()));
            (offset < env.shared.size).then(|| env.shared.load(offset, 1))
        } else if let Some(o) = within(PARAM_WINDOW) {
            self.cx.params.get(o as usize).map(|b| u64::from(*b))
        } else {
            let found = self.cx.memory.locate(at, &mut self.hint);
            found
                .filter(|a| at - a.base < a.len)
                .map(|a| a.load(at - a.base, 1))
        };
        found.map(|v| v as u8).ok_or(Nowhere)
    }

    /// `bytes` bytes, 4 or 8, from a multiple of as many on.
    fn number(&mut self, at: u64, bytes: u64) -> Result<u64, Nowhere> {
        // Arguments are local, as compilers have it.
        let offset = at.wrapping_sub(LOCAL_WINDOW);
        if offset < WINDOW {
            let found = self.w.local_load(self.lane, offset, bytes as u32);
            return found.ok_or(Nowhere);
        }
        let mut raw = [0u8; 8];
        for (i, byte) in (0..bytes).zip(&mut raw) {
            *byte = self.byte(at.wrapping_add(i))?;
        }
        Ok(little(&raw))
    }

    /// The bytes of a string up to its zero.
    fn string(&mut self, at: u64) -> Result<Vec<u8>, Nowhere> {
        let mut out = Vec::new();
        for i in 0..MAX_STRING {
            match self.byte(at.wrapping_add(i))? {
                0 => break,
                b => out.push(b),
            }
        }
        Ok(out)
    }
}

/// What `printf` prints. Arguments lie one after the other, each aligned to its size of 4 or 8 bytes.
fn print(
    cx: &Context<'_>,
    env: &Env,
    w: &Warp,
    lane: usize,
    format: u64,
    args: u64,
) -> Result<Vec<u8>, Nowhere> {
    let view = || View {
        cx,
        env,
        w,
        lane,
        hint: 0,
    };
    let (mut strings, mut numbers) = (view(), view());
    let format = strings.string(format)?;
    let mut at = args;
    let mut next = |bytes: u64| -> Result<u64, Nowhere> {
        let from = at.checked_next_multiple_of(bytes).ok_or(Nowhere)?;
        at = from.wrapping_add(bytes);
        numbers.number(from, bytes)
    };
    let mut out = Vec::new();
    let mut rest = format.as_slice();
    while let Some((&c, tail)) = rest.split_first() {
        rest = tail;
        if c != b'%' {
            out.push(c);
            continue;
        }
        let (spec, tail) = Spec::parse(rest);
        rest = tail;
        let width = match spec.width {
            Some(Number::Given(n)) => n as i32,
            Some(Number::Argument) => next(4)? as u32 as i32,
            None => 0,
        };
        let precision = match spec.precision {
            Some(Number::Given(n)) => Some(n),
            Some(Number::Argument) => usize::try_from(next(4)? as u32 as i32).ok(),
            None => None,
        };
        let size = if spec.long { 8 } else { 4 };
        let body = match spec.conversion {
            b'%' => "%".to_owned().into_bytes(),
            b'd' | b'i' => {
                let v = next(size)?;
                let v = if spec.long {
                    v as i64
                } else {
                    i64::from(v as u32 as i32)
                };
                integer(v.unsigned_abs().to_string(), v < 0, precision, &spec)
            }
            b'u' => integer(next(size)?.to_string(), false, precision, &spec),
            b'x' => integer(format!("{:x}", next(size)?), false, precision, &spec),
            b'X' => integer(format!("{:X}", next(size)?), false, precision, &spec),
            b'o' => integer(format!("{:o}", next(size)?), false, precision, &spec),
            b'p' => format!("{:#x}", next(8)?).into_bytes(),
            b'c' => vec![next(4)? as u8],
            b's' => {
                let pointer = next(8)?;
                let mut text = strings.string(pointer)?;
                text.truncate(precision.unwrap_or(usize::MAX));
                text
            }
            b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
                float(f64::from_bits(next(8)?), precision, &spec)
            }
            other => vec![b'%', other],
        };
        pad(&mut out, &body, width, &spec);
    }
    Ok(out)
}

/// A width or precision.
enum Number {
    Given(usize),
    Argument,
}

/// `%-08.3lld` and the like.
#[allow(clippy::struct_excessive_bools)] // the flags of printf
struct Spec {
    left: bool,
    zero: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    width: Option<Number>,
    precision: Option<Number>,
    long: bool,
    conversion: u8,
}

impl Spec {
    /// Reads what follows a `%`.
    fn parse(mut text: &[u8]) -> (Self, &[u8]) {
        let mut spec = Self {
            left: false,
            zero: false,
            plus: false,
            space: false,
            alternate: false,
            width: None,
            precision: None,
            long: false,
            conversion: b'%',
        };
        while let Some((&c, tail)) = text.split_first() {
            match c {
                b'-' => spec.left = true,
                b'0' => spec.zero = true,
                b'+' => spec.plus = true,
                b' ' => spec.space = true,
                b'#' => spec.alternate = true,
                _ => break,
            }
            text = tail;
        }
        (spec.width, text) = number(text);
        if let Some((b'.', tail)) = text.split_first() {
            (spec.precision, text) = number(tail);
            spec.precision = spec.precision.or(Some(Number::Given(0)));
        }
        while let Some((&c, tail)) = text.split_first() {
            match c {
                b'l' | b'j' | b'z' | b't' => spec.long = true,
                b'h' | b'L' => {}
                _ => {
                    spec.conversion = c;
                    return (spec, tail);
                }
            }
            text = tail;
        }
        (spec, text)
    }
}

fn number(text: &[u8]) -> (Option<Number>, &[u8]) {
    if let Some((b'*', tail)) = text.split_first() {
        return (Some(Number::Argument), tail);
    }
    let digits = text.iter().take_while(|c| c.is_ascii_digit()).count();
    if digits == 0 {
        return (None, text);
    }
    let value = text[..digits]
        .iter()
        .fold(0usize, |n, c| (n * 10 + usize::from(c - b'0')).min(4096));
    (Some(Number::Given(value)), &text[digits..])
}

fn sign(negative: bool, spec: &Spec) -> &'static str {
    match (negative, spec.plus, spec.space) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    }
}

fn integer(digits: String, negative: bool, precision: Option<usize>, spec: &Spec) -> Vec<u8> {
    let prefix = match spec.conversion {
        b'x' if spec.alternate && digits != "0" => "0x",
        b'X' if spec.alternate && digits != "0" => "0X",
        b'o' if spec.alternate => "0",
        _ => "",
    };
    let sign = match spec.conversion {
        b'd' | b'i' => sign(negative, spec),
        _ => "",
    };
    let least = precision.unwrap_or(1).min(4096);
    let digits = if least == 0 && digits == "0" {
        String::new()
    } else {
        digits
    };
    format!("{sign}{prefix}{digits:0>least$}").into_bytes()
}

/// A float by `%f`, `%e`, `%g` or `%a`.
fn float(x: f64, precision: Option<usize>, spec: &Spec) -> Vec<u8> {
    let magnitude = x.abs();
    let upper = spec.conversion.is_ascii_uppercase();
    let p = precision.unwrap_or(6).min(4096);
    let digits = if x.is_nan() {
        "nan".to_owned()
    } else if x.is_infinite() {
        "inf".to_owned()
    } else {
        match spec.conversion.to_ascii_lowercase() {
            b'f' => format!("{magnitude:.p$}"),
            b'e' => exponent(magnitude, p),
            b'g' => general(magnitude, p.max(1), spec.alternate),
            _ => hexadecimal(magnitude),
        }
    };
    let digits = if upper { digits.to_uppercase() } else { digits };
    let sign = sign(x.is_sign_negative() && !x.is_nan(), spec);
    format!("{sign}{digits}").into_bytes()
}

/// `d.ddde+XX`.
fn exponent(x: f64, precision: usize) -> String {
    let text = format!("{x:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let value: i32 = exponent.parse().unwrap_or(0);
    let sign = if value < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", value.abs())
}

fn general(x: f64, precision: usize, keep_zeros: bool) -> String {
    let scientific = exponent(x, precision - 1);
    let power: i32 = scientific
        .split_once('e')
        .and_then(|(_, e)| e.parse().ok())
        .unwrap_or(0);
    let trim = |text: &str| {
        if keep_zeros || !text.contains('.') {
            return text.to_owned();
        }
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if power < -4 || power >= precision as i32 {
        let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "+00"));
        return format!("{}e{exponent}", trim(mantissa));
    }
    let decimals = (precision as i32 - 1 - power).max(0) as usize;
    trim(&format!("{x:.decimals$}"))
}

/// `0x1.8p+1`.
fn hexadecimal(x: f64) -> String {
    let bits = x.to_bits();
    let (raw, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    let (lead, power) = match raw {
        0 if fraction == 0 => (0, 0),
        0 => (0, -1022),
        e => (1, e - 1023),
    };
    let mut out = format!("0x{lead}");
    if fraction != 0 {
        let digits = format!("{fraction:013x}");
        let _ = write!(out, ".{}", digits.trim_end_matches('0'));
    }
    let _ = write!(out, "p{power:+}");
    out
}

/// Appends `body`, filled up to the width.
fn pad(out: &mut Vec<u8>, body: &[u8], width: i32, spec: &Spec) {
    let left = spec.left || width < 0;
    let missing = (width.unsigned_abs() as usize)
        .min(4096)
        .saturating_sub(body.len());
    let numeric = !body.contains(&b'n')
        && body
            .last()
            .is_some_and(|c| c.is_ascii_hexdigit() || *c == b'.');
    if left {
        out.extend_from_slice(body);
        out.resize(out.len() + missing, b' ');
    } else if spec.zero && numeric && !matches!(spec.conversion, b's' | b'c' | b'%') {
        // Zeros go between sign and digits.
        let sign = body
            .iter()
            .take_while(|c| matches!(c, b'-' | b'+' | b' '))
            .count();
        out.extend_from_slice(&body[..sign]);
        out.resize(out.len() + missing, b'0');
        out.extend_from_slice(&body[sign..]);
    } else {
        out.resize(out.len() + missing, b' ');
        out.extend_from_slice(body);
    }
}
