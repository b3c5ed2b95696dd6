//! What JavaScript calls: numbers in, numbers out, as in the page's other modules.
//!
//! ```text
//! at = packed(length)        JavaScript writes `length` packed bytes at `at`
//! n  = unpack()              unpacks a module of n bytes; 0 if the packed bytes are damaged
//! at = unpacked()            JavaScript reads them from `at`
//! ```
//!
//! What the first call unpacks is known to the later ones. All bytes lie in vectors of this module, so that nothing here follows a pointer. The one
//! `unsafe` is the attribute that gives a function its name in the module; no dependency exports these three.

use std::sync::Mutex;

use crate::streams::merge;

static PACKED: Mutex<Vec<u8>> = Mutex::new(Vec::new());
/// The first module, its code sorted.
static KNOWN: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static MODULE: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Makes room for `length` packed bytes and returns its address.
// SAFETY: no other function of the module is exported under this name.
#[unsafe(export_name = "packed")]
pub extern "C" fn packed(length: usize) -> *const u8 {
    PACKED.lock().map_or(std::ptr::null(), |mut packed| {
        packed.clear();
        packed.resize(length, 0);
        packed.as_ptr()
    })
}

/// Unpacks a module and returns how many bytes it has.
// SAFETY: no other function of the module is exported under this name.
#[unsafe(export_name = "unpack")]
pub extern "C" fn unpack() -> usize {
    let (Ok(packed), Ok(mut known), Ok(mut module)) = (PACKED.lock(), KNOWN.lock(), MODULE.lock())
    else {
        return 0;
    };
    let Ok(sorted) = crate::unpack(&packed, &known) else {
        return 0;
    };
    *module = merge(&sorted).unwrap_or_default();
    if known.is_empty() {
        *known = sorted;
    }
    module.len()
}

/// The address of the module.
// SAFETY: no other function of the module is exported under this name.
#[unsafe(export_name = "unpacked")]
pub extern "C" fn unpacked() -> *const u8 {
    MODULE
        .lock()
        .map_or(std::ptr::null(), |module| module.as_ptr())
}
