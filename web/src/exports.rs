//! What JavaScript calls: numbers in, numbers out.
//!
//! ```text
//! at = question(length)      JavaScript writes `length` bytes of UTF-8 at `at`
//! n = answer()               answers it
//! at = answer_at()           JavaScript reads `n` bytes of UTF-8 from `at`
//! ```
//!
//! Both texts lie in vectors of this module, whose addresses are what the functions return, so that nothing here follows a pointer. The one
//! `unsafe` is the attribute that gives a function its name in the module: two functions of one name would be undefined behaviour, and these
//! three have names that no dependency exports.

use std::sync::Mutex;

static QUESTION: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static ANSWER: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Makes room for a question of `length` bytes and returns its address.
// SAFETY: no other function of the module is exported under this name.
#[unsafe(export_name = "question")]
pub extern "C" fn question(length: usize) -> *const u8 {
    QUESTION.lock().map_or(std::ptr::null(), |mut question| {
        question.clear();
        question.resize(length, 0);
        question.as_ptr()
    })
}

/// Answers the question and returns how many bytes the answer has.
// SAFETY: no other function of the module is exported under this name.
#[unsafe(export_name = "answer")]
pub extern "C" fn answer() -> usize {
    let question = QUESTION.lock().map_or(Vec::new(), |text| text.clone());
    let text = crate::ask(&String::from_utf8_lossy(&question));
    let length = text.len();
    if let Ok(mut answer) = ANSWER.lock() {
        *answer = text.into_bytes();
    }
    length
}

/// The address of the answer.
// SAFETY: no other function of the module is exported under this name.
#[unsafe(export_name = "answer_at")]
pub extern "C" fn answer_at() -> *const u8 {
    ANSWER
        .lock()
        .map_or(std::ptr::null(), |answer| answer.as_ptr())
}
