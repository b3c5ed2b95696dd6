//! Text in a fixed buffer, written in `const fn`.
//!
//! Stable Rust lets a `const` panic with a `&str` computed at compile time but not with `format!`. [`Message`] does that
//! in a fixed buffer: append text and integers, read the result as `&str`. Text beyond the capacity is cut off, so that
//! writing a message never fails.

use core::fmt;

const CAPACITY: usize = Message::CAPACITY;

/// A short ASCII text: the message of an error.
///
/// ```
/// use layout_core::Message;
/// const TEXT: Message = Message::new().text("stride ").int(-4);
/// assert_eq!(TEXT.as_str(), "stride -4");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Message {
    bytes: [u8; CAPACITY],
    len: usize,
}

impl Message {
    /// Bytes that fit.
    ///
    /// ```
    /// use layout_core::Message;
    /// assert!(Message::new().text("an overflow").as_str().len() <= Message::CAPACITY);
    /// ```
    pub const CAPACITY: usize = 384;

    /// The empty text.
    ///
    /// ```
    /// use layout_core::Message;
    /// assert_eq!(Message::new().as_str(), "");
    /// ```
    pub const fn new() -> Self {
        Self {
            bytes: [0; CAPACITY],
            len: 0,
        }
    }

    /// Appends text. Bytes that are not ASCII become `?`.
    ///
    /// ```
    /// use layout_core::Message;
    /// assert_eq!(Message::new().text("4×8").as_str(), "4??8");
    /// ```
    #[must_use]
    pub const fn text(mut self, text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut i = 0;
        while i < bytes.len() && self.len < CAPACITY {
            self.bytes[self.len] = if bytes[i].is_ascii() { bytes[i] } else { b'?' };
            self.len += 1;
            i += 1;
        }
        self
    }

    /// Appends an integer in decimal.
    ///
    /// ```
    /// use layout_core::Message;
    /// assert_eq!(Message::new().int(i64::MIN).as_str(), "-9223372036854775808");
    /// ```
    #[must_use]
    pub const fn int(mut self, value: i64) -> Self {
        let mut digits = [0u8; 20];
        let mut rest = value.unsigned_abs();
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if value < 0 {
            self = self.text("-");
        }
        while at < digits.len() && self.len < CAPACITY {
            self.bytes[self.len] = digits[at];
            self.len += 1;
            at += 1;
        }
        self
    }

    /// Appends a count and its noun: `1 mode`, `2 modes`.
    ///
    /// ```
    /// use layout_core::Message;
    /// assert_eq!(Message::new().count(2, "mode", "modes").as_str(), "2 modes");
    /// ```
    #[must_use]
    pub const fn count(self, value: usize, one: &str, many: &str) -> Self {
        self.index(value)
            .text(" ")
            .text(if value == 1 { one } else { many })
    }

    /// Appends an integer in hexadecimal: `0x1f`.
    ///
    /// ```
    /// use layout_core::Message;
    /// assert_eq!(Message::new().hex(31).as_str(), "0x1f");
    /// ```
    #[must_use]
    pub const fn hex(mut self, value: u64) -> Self {
        self = self.text("0x");
        let mut digits = if value == 0 {
            1
        } else {
            (64 - value.leading_zeros()).div_ceil(4)
        };
        while digits > 0 {
            digits -= 1;
            let digit = (value >> (4 * digits) & 15) as usize;
            self = self.text("0123456789abcdef".split_at(digit).1.split_at(1).0);
        }
        self
    }

    /// Appends a count or a position.
    ///
    /// ```
    /// use layout_core::Message;
    /// assert_eq!(Message::new().text("mode ").index(2).as_str(), "mode 2");
    /// ```
    #[must_use]
    pub const fn index(self, value: usize) -> Self {
        self.int(value as i64)
    }

    /// The text.
    ///
    /// ```
    /// use layout_core::IntTuple;
    /// let error = IntTuple::parse("()").unwrap_err();
    /// assert_eq!(error.message().as_str(), "an empty tuple; a tuple needs at least one element");
    /// ```
    pub const fn as_str(&self) -> &str {
        match core::str::from_utf8(self.bytes.split_at(self.len).0) {
            Ok(text) => text,
            Err(_) => "",
        }
    }
}

impl Default for Message {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

/// Panics with a message: in a constant, the compiler's error.
#[track_caller]
pub(crate) const fn fail(message: &Message) -> ! {
    panic!("{}", message.as_str())
}
