//! The table that the cases are checked against, and the short names that they are written with.

use std::collections::BTreeSet;
use std::fmt::{Debug, Display};

use layout_core::banks::{BankError, UnknownAccess, r700::R700Error};
use layout_core::derive::DeriveError;
use layout_core::f2::F2Error;
use layout_core::proof::ProofError;
use layout_core::{
    Affine, Chain, CoordLayout, Function, IntTuple, Layout, LayoutError, Message, ParseError,
    ParseErrorKind, Slicer, Swizzled,
};

/// An error of the crate.
pub(crate) trait Refusal: Display + Debug {
    fn code(&self) -> &'static str;

    /// The enum and the variant, and those inside.
    fn variants(&self) -> Vec<(&'static str, String)>;
}

/// The name of a variant.
fn variant(error: &impl Debug) -> String {
    let text = format!("{error:?}");
    let end = text.find(|c: char| !c.is_alphanumeric());
    text[..end.unwrap_or(text.len())].to_string()
}

macro_rules! refusal {
    ($($Error:ident $(, $Outer:ident)?;)*) => {
        $(impl Refusal for $Error {
            fn code(&self) -> &'static str {
                self.code()
            }

            fn variants(&self) -> Vec<(&'static str, String)> {
                vec![(stringify!($Error), variant(self))]
            }
        })*
    };
}

refusal! { LayoutError; F2Error; BankError; UnknownAccess; R700Error; DeriveError; }

impl Refusal for ProofError {
    fn code(&self) -> &'static str {
        self.code()
    }

    fn variants(&self) -> Vec<(&'static str, String)> {
        let mut all = vec![("ProofError", variant(self))];
        if let Self::Bank(inner) = self {
            all.extend(inner.variants());
        }
        all
    }
}

impl Refusal for ParseError {
    fn code(&self) -> &'static str {
        self.code()
    }

    fn variants(&self) -> Vec<(&'static str, String)> {
        let mut all = vec![("ParseErrorKind", variant(&self.kind))];
        if let ParseErrorKind::Layout(inner) = &self.kind {
            all.extend(inner.variants());
        }
        all
    }
}

/// What the cases gave.
pub(crate) struct Table {
    seen: BTreeSet<(&'static str, String)>,
    wrong: Vec<String>,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self {
            seen: BTreeSet::new(),
            wrong: Vec::new(),
        }
    }

    /// Checks one case: the call as text, what it returned, and the code and message that it must have.
    pub(crate) fn check<T: Debug, E: Refusal>(
        &mut self,
        call: &str,
        result: Result<T, E>,
        code: &str,
        message: &str,
    ) {
        let error = match result {
            Ok(value) => {
                self.wrong.push(format!("{call}\n  is {value:?}"));
                return;
            }
            Err(error) => error,
        };
        let text = error.to_string();
        assert_ne!(
            text.len(),
            Message::CAPACITY,
            "{call}: cut off at the capacity: {text}"
        );
        self.seen.extend(error.variants());
        if (error.code(), text.as_str()) != (code, message) {
            self.wrong
                .push(format!("{call}\n  => {:?}, {text:?}", error.code()));
        }
    }

    /// Whether a case had this variant.
    pub(crate) fn has(&self, name: &'static str, variant: &str) -> bool {
        self.seen.contains(&(name, variant.to_string()))
    }

    /// Fails with every case that was not as written.
    pub(crate) fn report(&self) {
        let (n, text) = (self.wrong.len(), self.wrong.join("\n"));
        assert!(n == 0, "{n} cases are not as written:\n{text}");
    }
}

/// Cases: `call => code, message;`.
macro_rules! cases {
    ($table:expr; $($call:expr => $code:literal, $message:literal;)*) => {
        $($table.check(stringify!($call), $call, $code, $message);)*
    };
}
pub(crate) use cases;

pub(crate) fn l(text: &str) -> Layout {
    Layout::parse(text).unwrap()
}

pub(crate) fn s(text: &str) -> Swizzled {
    Swizzled::parse(text).unwrap()
}

pub(crate) fn t(text: &str) -> IntTuple {
    IntTuple::parse(text).unwrap()
}

pub(crate) fn a(text: &str) -> Affine {
    Affine::parse(text).unwrap()
}

pub(crate) fn c(text: &str) -> CoordLayout {
    CoordLayout::parse(text).unwrap()
}

pub(crate) fn f(text: &str) -> Function {
    Function::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub(crate) fn at(text: &str) -> Slicer {
    Slicer::parse(text).unwrap()
}

/// A composition of several steps.
pub(crate) fn chain(text: &str) -> Chain {
    match f(text) {
        Function::Chain(chain) => chain,
        other => panic!("{text} is {other:?}"),
    }
}

/// `(1,1,…)`.
pub(crate) fn ones(n: usize) -> String {
    format!("({})", vec!["1"; n].join(","))
}

/// `((…1…))`.
pub(crate) fn nested(n: usize) -> String {
    format!("{}1{}", "(".repeat(n), ")".repeat(n))
}
