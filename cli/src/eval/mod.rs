//! `tilewright eval`: the layout algebra as a calculator.
//!
//! [`calculator`] is the language: text in, value or error out, nothing about terminals. [`command`] is the subcommand
//! around it. The grammar is in `docs/cli-eval.md`.

pub(crate) mod calculator;
mod command;

pub(crate) use command::{EvalArgs, run};
