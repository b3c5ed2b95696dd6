//! `tilewright banks`: wavefronts of captured warp accesses.
//!
//! A CSV names an access and an address for each lane in every row, as a trace or a profiler's script would write it:
//!
//! ```text
//! op,lane0,lane1,…,lane31
//! ld.32,0,128,256,…
//! ```
//!
//! Addresses are byte offsets, -1 for an inactive lane; lanes that have no column are inactive. Rows are read, counted and written one at
//! a time, so that a file of any length (or a pipe) works; under `--json` they are kept until all are counted. Columns that are not ours
//! are kept.
//!
//! The register models read register numbers in `lane0..lane2` for op `ffma`. A column `reuse` with flags such as `010` (slots a, b, c)
//! feeds the operand reuse cache of the next row; wavefronts are then cycles.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Map, Value, json};
use tilewright::banks::registers::{Ffma, ReuseCache};
use tilewright::banks::{Access, BankModel, LANES, MODELS, model_named, wavefronts};

use tilewright_workbench::ncu;

use crate::error::{CliError, Outcome, finish};
use crate::{input, output};

/// Bytes of the longest line that is read.
const MOST_BYTES: usize = 1 << 20;

/// Score warp accesses against a bank model: captured ones, those to a layout, or a profiler's report
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("what").required(true).multiple(true).args(["csv", "ncu", "layout", "tile"])))]
pub(crate) struct BanksArgs {
    /// Print one JSON value: an array with one object a row
    #[arg(long)]
    json: bool,
    /// CSV with the columns op,lane0..lane31 (byte offsets, -1 inactive); `-` reads standard input
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// A report of Nsight Compute: what `ncu --import REPORT --page source --csv` or `--page raw --csv` writes; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with = "csv")]
    ncu: Option<PathBuf>,
    /// With --ncu: a part of the name of the kernel to look at
    #[arg(long, value_name = "NAME", requires = "ncu", conflicts_with = "csv")]
    kernel: Option<String>,
    #[command(flatten)]
    known: Known,
    /// nvidia, amd-gcn, amd-r700, maxwell-registers, volta-registers
    #[arg(long, default_value = "nvidia")]
    model: String,
}

/// What is known of a kernel: its tile and the accesses to it.
#[derive(clap::Args)]
struct Known {
    /// The layout of the tile, from (row, column) to the element; row-major if only the tile is given
    #[arg(long, conflicts_with = "csv")]
    layout: Option<String>,
    /// Rows and columns of the tile
    #[arg(long, value_name = "RxC", conflicts_with = "csv")]
    tile: Option<String>,
    /// Element type or bytes
    #[arg(
        long,
        value_name = "TYPE",
        default_value = "f32",
        conflicts_with = "csv"
    )]
    elem: String,
    /// 'OP @ LAYOUT', as in derive; may be repeated
    #[arg(long = "access", value_name = "OP @ LAYOUT", conflicts_with = "csv")]
    accesses: Vec<String>,
}

/// Bytes of the largest report that is read.
const MOST_REPORT_BYTES: u64 = 256 << 20;

/// Runs `banks`.
pub(crate) fn run(args: &BanksArgs) -> ExitCode {
    let outcome = match (&args.csv, &args.ncu) {
        (Some(csv), _) => score(args, csv),
        _ if args.model != "nvidia" => Err(CliError::usage(
            "unknown_model",
            "`--model` goes with `--csv`: accesses to a layout and reports are counted on the banks of nvidia",
        )),
        (None, Some(report)) => profile(args, report),
        (None, None) => model(args),
    };
    finish(outcome, args.json)
}

impl Known {
    fn model(&self) -> ncu::Model<'_> {
        ncu::Model {
            tile: self.tile.as_deref(),
            layout: self.layout.as_deref(),
            elem: &self.elem,
            accesses: self.accesses.iter().map(String::as_str).collect(),
        }
    }

    fn is_given(&self) -> bool {
        self.tile.is_some() || self.layout.is_some() || !self.accesses.is_empty()
    }
}

/// The accesses to a layout, counted by the model alone.
fn model(args: &BanksArgs) -> Outcome {
    if args.known.accesses.is_empty() {
        let message = "give an access, as in --access 'ld.32 @ 32:64': lane l begins at the element with the row-major index 64*l of the tile";
        return Err(CliError::usage("usage", message));
    }
    let counted = args.known.model().count()?;
    if args.json {
        output::print_json(&counted.to_json());
    } else {
        output::print_line(&counted.text());
    }
    Ok(ExitCode::SUCCESS)
}

/// A profiler's report, compared with the model where the tile is known.
fn profile(args: &BanksArgs, path: &Path) -> Outcome {
    let bytes = if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        let input = io::stdin().lock();
        let read = input.take(MOST_REPORT_BYTES).read_to_end(&mut bytes);
        read.map_err(|error| CliError::io(path, &error))?;
        bytes
    } else {
        input::file(path, MOST_REPORT_BYTES, "a report")?
    };
    let report = String::from_utf8_lossy(&bytes);
    let question = ncu::Question {
        report: &report,
        model: args.known.is_given().then(|| args.known.model()),
        kernel: args.kernel.as_deref(),
    };
    let answer = question.answer()?;
    if args.json {
        output::print_json(&answer.to_json());
    } else {
        output::print_line(&answer.text());
    }
    Ok(ExitCode::SUCCESS)
}

/// What a column of the CSV is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Op,
    Lane(usize),
    Reuse,
    Kept,
}

struct Header {
    names: Vec<String>,
    columns: Vec<Column>,
}

/// Keys of a row's JSON object that are ours; a column of that name is kept under `NAME_in`.
const OURS: [&str; 4] = ["row", "op", "wavefronts", "ideal"];

fn score(args: &BanksArgs, csv: &Path) -> Outcome {
    let Some(model) = model_named(&args.model) else {
        let names: Vec<&str> = MODELS.iter().map(|m| m.name).collect();
        return Err(CliError::usage(
            "unknown_model",
            format!(
                "there is no bank model `{}`; known are {}",
                args.model,
                names.join(", ")
            ),
        ));
    };
    let input: Box<dyn BufRead> = if csv.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(csv).map_err(|error| CliError::io(csv, &error))?;
        Box::new(BufReader::new(file))
    };
    let mut lines = numbered(input, csv);
    let Some(first) = lines.next() else {
        return Err(CliError::new(
            "csv_header",
            "the file is empty: a header op,lane0,… is expected",
        ));
    };
    let header = Header::parse(&first?.1, model)?;
    let mut report = match Report::new(args.json, &header) {
        Ok(report) => report,
        Err(error) => return Ok(unwritten(error)),
    };
    let mut cache = ReuseCache::new();
    for line in lines {
        let counted = line.and_then(|(number, line)| {
            if line.trim().is_empty() {
                return Ok(None);
            }
            let fields = split(&line);
            header
                .count(&fields, model, &mut cache)
                .map(|counts| Some((line.clone(), fields, counts)))
                .map_err(|(code, message)| CliError::new(code, format!("line {number}: {message}")))
        });
        match counted {
            Ok(None) => {}
            Ok(Some((line, fields, counts))) => {
                if let Err(error) = report.row(&line, &fields, counts) {
                    return Ok(unwritten(error));
                }
            }
            Err(error) => return report.fail(error),
        }
    }
    report.end();
    Ok(ExitCode::SUCCESS)
}

/// The lines of a file, from 1, each of at most [`MOST_BYTES`].
fn numbered(
    mut input: Box<dyn BufRead>,
    path: &Path,
) -> impl Iterator<Item = Result<(usize, String), CliError>> {
    let mut number = 0;
    let mut line = Vec::new();
    std::iter::from_fn(move || {
        number += 1;
        // An endless line is not read to its end.
        let mut start = input.by_ref().take(MOST_BYTES as u64 + 1);
        match input::line(&mut start, &mut line, MOST_BYTES + 1) {
            Ok(None) => return None,
            Ok(Some(_)) if line.len() > MOST_BYTES => {
                let message = format!("line {number} has more than {MOST_BYTES} bytes");
                return Some(Err(CliError::new("csv_line", message)));
            }
            Ok(Some(_)) => {}
            Err(error) => return Some(Err(CliError::io(path, &error))),
        }
        let text = std::str::from_utf8(&line).map(|text| {
            let text = text.strip_suffix('\n').unwrap_or(text);
            text.strip_suffix('\r').unwrap_or(text).to_owned()
        });
        Some(match text {
            Ok(text) => Ok((number, text)),
            Err(_) => Err(CliError::new(
                "csv_line",
                format!("{}: line {number} is not UTF-8 text", path.display()),
            )),
        })
    })
}

/// Standard output takes no more: what is left of the input is not read.
fn unwritten(error: io::Error) -> ExitCode {
    output::written(Err(error));
    ExitCode::SUCCESS
}

impl Header {
    fn parse(line: &str, model: &BankModel) -> Result<Self, CliError> {
        let names = split(line.trim_start_matches('\u{feff}'));
        let lanes = if model.registers { 3 } else { LANES };
        let columns: Vec<Column> = names
            .iter()
            .map(|name| match name.as_str() {
                "op" => Ok(Column::Op),
                "reuse" if model.registers => Ok(Column::Reuse),
                _ => match name.strip_prefix("lane").map(str::parse::<usize>) {
                    Some(Ok(lane)) if lane < LANES => Ok(Column::Lane(lane)),
                    Some(Ok(lane)) => Err(CliError::new(
                        "csv_header",
                        format!(
                            "column lane{lane}: lanes go from lane0 to lane{}",
                            lanes - 1
                        ),
                    )),
                    _ => Ok(Column::Kept),
                },
            })
            .collect::<Result<_, _>>()?;
        for (i, column) in columns.iter().enumerate() {
            if *column != Column::Kept && columns[..i].contains(column) {
                return Err(CliError::new(
                    "csv_header",
                    format!("column {} occurs twice", names[i]),
                ));
            }
        }
        for (needed, name) in [(Column::Op, "op"), (Column::Lane(0), "lane0")] {
            if !columns.contains(&needed) {
                return Err(CliError::new(
                    "csv_header",
                    format!(
                        "the header lacks the column {name}; it needs op,lane0,…,lane{}",
                        lanes - 1
                    ),
                ));
            }
        }
        Ok(Self { names, columns })
    }

    /// The access of a row, its wavefronts and its ideal; or a code and a message.
    fn count(
        &self,
        fields: &[String],
        model: &BankModel,
        cache: &mut ReuseCache,
    ) -> Result<(Access, u32, u32), (&'static str, String)> {
        if fields.len() != self.columns.len() {
            return Err((
                "csv_row",
                format!(
                    "{} field{}, but the header has {}",
                    fields.len(),
                    if fields.len() == 1 { "" } else { "s" },
                    self.columns.len()
                ),
            ));
        }
        let mut access = None;
        let mut addresses = [-1_i64; LANES];
        let mut reuse = None;
        for ((field, column), name) in fields.iter().zip(&self.columns).zip(&self.names) {
            let field = field.trim();
            match *column {
                Column::Op => {
                    access = Some(
                        field
                            .parse::<Access>()
                            .map_err(|error| (error.code(), format!("op {field:?}: {error}")))?,
                    );
                }
                Column::Lane(lane) => {
                    addresses[lane] = field.parse().map_err(|_| {
                        (
                            "csv_row",
                            format!("{name} is {field:?}: an integer is expected"),
                        )
                    })?;
                }
                Column::Reuse => reuse = Some(flags(field)?),
                Column::Kept => {}
            }
        }
        let Some(access) = access else {
            return Err(("csv_row", "no op".to_owned()));
        };
        let count = wavefronts(model, access, &addresses)
            .map_err(|error| (error.code(), error.to_string()))?;
        let Some(reuse) = reuse else {
            return Ok((access, count.wavefronts, count.ideal));
        };
        let mut sources = [0; 3];
        for (source, &register) in sources.iter_mut().zip(&addresses) {
            *source = u16::try_from(register).map_err(|_| {
                (
                    "csv_row",
                    "with a reuse column all three operands must be registers".to_owned(),
                )
            })?;
        }
        let stalls = cache.issue(model, &Ffma::new(sources).reusing(reuse));
        Ok((access, stalls + 1, 1))
    }
}

fn flags(field: &str) -> Result<[bool; 3], (&'static str, String)> {
    let mut flags = [false; 3];
    let bytes = field.as_bytes();
    if bytes.len() != 3 || !bytes.iter().all(|b| matches!(b, b'0' | b'1')) {
        return Err((
            "csv_row",
            format!("reuse is {field:?}: three flags such as 010 are expected"),
        ));
    }
    for (flag, byte) in flags.iter_mut().zip(bytes) {
        *flag = *byte == b'1';
    }
    Ok(flags)
}

/// The fields of a CSV line; quotes may enclose a field, and a quote within is doubled.
fn split(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut characters = line.trim_end_matches(['\r', '\n']).chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                push(&mut fields, '"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => push(&mut fields, c),
        }
    }
    fields
}

fn push(fields: &mut [String], c: char) {
    if let Some(field) = fields.last_mut() {
        field.push(c);
    }
}

/// Takes rows as they come. The CSV with two more columns is written at once; the array of objects is kept until the last row is good,
/// so that standard output has one JSON value in any case.
struct Report<'a> {
    json: bool,
    header: &'a Header,
    out: BufWriter<io::StdoutLock<'static>>,
    objects: Vec<Value>,
    rows: u64,
    conflicts: u64,
    total: u64,
    ideal: u64,
}

impl<'a> Report<'a> {
    /// Begins the report: a CSV has its header, whether rows follow or not.
    fn new(json: bool, header: &'a Header) -> io::Result<Self> {
        let mut out = BufWriter::new(io::stdout().lock());
        if !json {
            let names = header.names.join(",");
            writeln!(out, "{names},model_wavefronts,model_ideal")?;
        }
        Ok(Self {
            json,
            header,
            out,
            objects: Vec::new(),
            rows: 0,
            conflicts: 0,
            total: 0,
            ideal: 0,
        })
    }

    fn row(
        &mut self,
        line: &str,
        fields: &[String],
        (op, count, ideal): (Access, u32, u32),
    ) -> io::Result<()> {
        if self.json {
            let object = self.object(fields, op, count, ideal);
            self.objects.push(object);
        } else {
            writeln!(self.out, "{},{count},{ideal}", line.trim_end())?;
        }
        self.rows += 1;
        self.conflicts += u64::from(count > ideal);
        self.total += u64::from(count);
        self.ideal += u64::from(ideal);
        Ok(())
    }

    fn object(&self, fields: &[String], op: Access, count: u32, ideal: u32) -> Value {
        let mut object = Map::new();
        object.insert("row".to_owned(), json!(self.rows));
        object.insert("op".to_owned(), json!(op.name()));
        object.insert("wavefronts".to_owned(), json!(count));
        object.insert("ideal".to_owned(), json!(ideal));
        let columns = self.header.names.iter().zip(&self.header.columns);
        for ((name, column), field) in columns.zip(fields) {
            if *column == Column::Kept {
                let key = if OURS.contains(&name.as_str()) {
                    format!("{name}_in")
                } else {
                    name.clone()
                };
                let value = field
                    .parse::<i64>()
                    .map_or_else(|_| json!(field), |n| json!(n));
                object.insert(key, value);
            }
        }
        Value::Object(object)
    }

    /// Every row was good.
    fn end(mut self) {
        output::written(self.out.flush());
        drop(self.out);
        if self.json {
            output::print_json(&Value::Array(self.objects));
        } else {
            eprintln!(
                "{} accesses, {} with conflicts; {} wavefronts, {} without conflicts",
                self.rows, self.conflicts, self.total, self.ideal
            );
        }
    }

    /// Ends on an error: rows of a CSV that are out already stay.
    fn fail(mut self, error: CliError) -> Outcome {
        output::written(self.out.flush());
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright::banks::{MAXWELL_REGISTERS, NVIDIA};

    #[test]
    fn fields_may_be_quoted() {
        assert_eq!(
            split("ld.32,\"a, \"\"b\"\"\",3\r\n"),
            ["ld.32", "a, \"b\"", "3"]
        );
        assert_eq!(split(""), [""]);
    }

    #[test]
    fn headers_are_checked() {
        for (line, fragment) in [
            ("lane0,lane1", "lacks the column op"),
            ("op,lane1", "lacks the column lane0"),
            ("op,lane0,lane0", "twice"),
            ("op,lane0,lane32", "lane31"),
        ] {
            let Err(error) = Header::parse(line, &NVIDIA) else {
                panic!("{line} must be refused");
            };
            assert!(
                error.to_json().to_string().contains(fragment),
                "{line}: {error:?}"
            );
        }
    }

    #[test]
    fn rows_are_counted_or_refused() {
        let Ok(header) = Header::parse("kernel,op,lane0,lane1", &NVIDIA) else {
            panic!("a good header");
        };
        let count = |line: &str| header.count(&split(line), &NVIDIA, &mut ReuseCache::new());
        assert_eq!(count("k,ld.32,0,128"), Ok((Access::Ld32, 2, 1)));
        assert_eq!(count("k,ld.32,0,-1"), Ok((Access::Ld32, 1, 1)));
        assert_eq!(
            count("k,ld.33,0,-1").map_err(|e| e.0),
            Err("unknown_access")
        );
        assert_eq!(count("k,ld.64,0,4").map_err(|e| e.0), Err("misaligned"));
        assert_eq!(count("k,ld.32,0").map_err(|e| e.0), Err("csv_row"));
        assert_eq!(count("k,ld.32,0,x").map_err(|e| e.0), Err("csv_row"));
    }

    #[test]
    fn the_reuse_column_feeds_the_next_row() {
        let Ok(header) = Header::parse("op,lane0,lane1,lane2,reuse", &MAXWELL_REGISTERS) else {
            panic!("a good header");
        };
        let mut cache = ReuseCache::new();
        let mut count = |line: &str| {
            header
                .count(&split(line), &MAXWELL_REGISTERS, &mut cache)
                .map(|c| c.1)
        };
        assert_eq!(count("ffma,65,72,2,010"), Ok(1));
        assert_eq!(count("ffma,64,72,1,000"), Ok(1));
        assert_eq!(count("ffma,64,72,1,000"), Ok(2));
    }
}
