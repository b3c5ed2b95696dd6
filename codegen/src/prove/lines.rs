//! Refusals name the lines of the author's program.

use crate::ir::{Address, Comment, Entry, Inst, Line, Node};
use crate::prove::ProofError;
use crate::prove::walk::memory::name_of;

/// Lines that a name may have in a message.
const MOST: usize = 3;

/// The error with the lines that it is about: `here`, where following the kernel stopped; otherwise those of the accesses that it names.
pub(in crate::prove) fn located(
    mut error: ProofError,
    entry: &Entry,
    here: Option<Line>,
) -> ProofError {
    let lines = |name: &str| {
        if let Some(line) = here {
            return vec![line];
        }
        let mut lines = Vec::new();
        accesses(entry, &entry.nodes, &mut None, &mut |access, line| {
            if access == name && !lines.contains(&line) {
                lines.push(line);
            }
        });
        lines
    };
    let add = |what: &mut String, lines: &[Line]| {
        if !lines.is_empty() {
            *what = format!("{what} ({})", listed(lines));
        }
    };
    match &mut error {
        ProofError::Address { access, .. }
        | ProofError::Bounds { access, .. }
        | ProofError::Alignment { access, .. }
        | ProofError::Width { access, .. }
        | ProofError::Guard { access, .. }
        | ProofError::Input { access, .. }
        | ProofError::Stale { access, .. }
        | ProofError::Undefined { access, .. }
        | ProofError::Unfinished { access, .. }
        | ProofError::Overwritten { access, .. } => add(access, &lines(access)),
        ProofError::Race { accesses, .. } => {
            for access in accesses {
                add(access, &lines(access));
            }
        }
        ProofError::Coverage { output, reason } => add(reason, &lines(&format!("write {output}"))),
        ProofError::Divergent { what }
        | ProofError::Undecided { what }
        | ProofError::PartialWarp { what }
        | ProofError::Loop { name: what, .. } => {
            add(what, here.as_slice());
        }
        ProofError::Register { register } | ProofError::Meaning { register } => {
            if let Some(line) = here {
                *register = format!("at {}", listed(&[line]));
            }
        }
        _ => {}
    }
    error
}

fn listed(lines: &[Line]) -> String {
    let mut list: Vec<String> = lines
        .iter()
        .take(MOST)
        .map(|line| format!("{}:{}", line.file(), line.line()))
        .collect();
    if lines.len() > MOST {
        list.push(format!("and {} more", lines.len() - MOST));
    }
    list.join(", ")
}

/// Calls `each` with every access that has a line, by its name.
fn accesses(
    entry: &Entry,
    nodes: &[Node],
    line: &mut Option<Line>,
    each: &mut impl FnMut(&str, Line),
) {
    for node in nodes {
        match node {
            Node::Comment(Comment::Line(at)) => *line = Some(at),
            Node::Inst(statement) => {
                let Some(line) = *line else { continue };
                let mut made = |at: &Address, reads| {
                    let place = (at.space(), at.place());
                    each(&name_of(entry, statement, place, reads), line);
                };
                match &statement.inst {
                    Inst::Load { at, .. } | Inst::LoadMatrix { at, .. } => made(at, true),
                    Inst::Store { at, .. } | Inst::StoreMatrix { at, .. } => made(at, false),
                    Inst::CopyAsync { to, from, .. } => {
                        made(from, true);
                        made(to, false);
                    }
                    _ => {}
                }
            }
            Node::If(branch) => {
                accesses(entry, &branch.then, line, each);
                accesses(entry, &branch.otherwise, line, each);
            }
            Node::Loop(iterations) => {
                accesses(entry, &iterations.entry, line, each);
                accesses(entry, &iterations.body, line, each);
            }
            Node::Roles(roles) => {
                for role in roles {
                    accesses(entry, &role.body, line, each);
                }
            }
            Node::Comment(Comment::Text(_))
            | Node::Assume(_)
            | Node::Leave { .. }
            | Node::Exit { .. } => {}
        }
    }
}
