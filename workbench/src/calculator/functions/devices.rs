//! Functions on matrices over several devices.

use tilewright::devices::{Distribution, DistributionError, Redistribution};

use super::super::devices::{self, Devices};
use super::super::error::EvalError;
use super::super::value::Value;
use super::args::{Answer, Args};

pub(super) fn devices(args: &Args<'_>) -> Answer {
    match args.name {
        "distribution" => {
            args.count(1, 2)?;
            let extents = optional_extents(args, 1)?;
            Ok(made(distribution(args, 0, extents)?))
        }
        "row_shards" | "column_shards" | "replicas" | "terms" => {
            args.count(2, 2)?;
            let (extents, devices) = (extents(args, 0)?, count(args, 1)?);
            let distribution = match args.name {
                "row_shards" => Distribution::rows(extents, devices),
                "column_shards" => Distribution::columns(extents, devices),
                "replicas" => Distribution::replicas(extents, devices),
                _ => Distribution::terms(extents, devices),
            };
            Ok(made(done(args, distribution)?))
        }
        "grid_shards" => {
            args.count(2, 2)?;
            let [rows, columns] = pair(args, 1, "devices along rows and columns, such as (2,2)")?;
            let devices = [clamp(rows), clamp(columns)];
            let grid = Distribution::grid(extents(args, 0)?, devices);
            Ok(made(done(args, grid)?))
        }
        "summed" => {
            args.count(1, 1)?;
            Ok(made(distribution(args, 0, None)?.summed()))
        }
        "shards" => {
            args.count(1, 2)?;
            let extents = optional_extents(args, 1)?;
            let of = distribution(args, 0, extents)?;
            Ok(Value::Devices(Box::new(Devices::Shards(of))))
        }
        "holders" => {
            args.count(2, 3)?;
            let of = distribution(args, 0, optional_extents(args, 2)?)?;
            let [row, column] = pair(args, 1, "an element (row, column)")?;
            let holders = of.holders(row, column);
            if holders.is_empty() {
                let [m, n] = of.extents();
                let message = format!("element ({row},{column}) is outside the {m}x{n} matrix");
                return Err(EvalError::new("out_of_range", message, args.items[1].1));
            }
            let holders = holders.into_iter().map(|device| Value::Int(device as i64));
            Ok(Value::List(holders.collect()))
        }
        _ => redistribute(args),
    }
}

/// `redistribute(FROM, TO [, (m,n)] [, bytes])`.
fn redistribute(args: &Args<'_>) -> Answer {
    args.count(2, 4)?;
    // An integer after the distributions is the bytes of an element, a tuple the extents.
    let mut rest = 2..args.items.len();
    let has_extents = rest.len() == 2 || rest.len() == 1 && args.items[2].0.as_int().is_none();
    let given = if has_extents {
        rest.next().map(|i| extents(args, i)).transpose()?
    } else {
        None
    };
    let bytes = match rest.next() {
        Some(i) => Some(positive(args, i, "the bytes of an element")?),
        None => None,
    };
    // A layout without extents has those of the other distribution.
    let known = |i: usize| match args.items[i].0.devices() {
        Some(Devices::Distribution(of)) => Some(of.extents()),
        _ => None,
    };
    let from = distribution(args, 0, given.or_else(|| known(1)))?;
    let to = distribution(args, 1, given.or_else(|| known(0)))?;
    let moved = Box::new(done(args, Redistribution::derive(&from, &to))?);
    Ok(Value::Devices(Box::new(Devices::Redistribution {
        moved,
        bytes,
    })))
}

fn made(distribution: Distribution) -> Value {
    Value::Devices(Box::new(Devices::Distribution(distribution)))
}

fn done<T>(args: &Args<'_>, result: Result<T, DistributionError>) -> Result<T, EvalError> {
    result.map_err(|error| EvalError::new(error.code(), error.to_string(), args.span))
}

/// Argument `i`: a distribution, or the layout of one with these extents or, without, with all that it covers.
fn distribution(
    args: &Args<'_>,
    i: usize,
    extents: Option<[u64; 2]>,
) -> Result<Distribution, EvalError> {
    let (value, span) = &args.items[i];
    let needed = "a distribution or its layout, such as (2,(4,6)):(4@0,(1@0,1@1))";
    devices::distribution(value, extents)
        .ok_or_else(|| args.wrong(i, needed))?
        .map_err(|error| EvalError::new(error.code(), error.to_string(), *span))
}

fn optional_extents(args: &Args<'_>, i: usize) -> Result<Option<[u64; 2]>, EvalError> {
    (i < args.items.len()).then(|| extents(args, i)).transpose()
}

fn extents(args: &Args<'_>, i: usize) -> Result<[u64; 2], EvalError> {
    pair(args, i, "the extents (rows, columns)")
}

/// Two integers that are not negative.
fn pair(args: &Args<'_>, i: usize, needed: &str) -> Result<[u64; 2], EvalError> {
    let tuple = args.items[i].0.as_tuple();
    let pair = tuple.filter(|t| t.leaves() == 2 && t.rank() == 2);
    let pair = pair.and_then(|t| Some([t.leaf(0).try_into().ok()?, t.leaf(1).try_into().ok()?]));
    pair.ok_or_else(|| args.wrong(i, needed))
}

fn positive(args: &Args<'_>, i: usize, needed: &str) -> Result<u64, EvalError> {
    let value = u64::try_from(args.int(i)?).ok().filter(|&n| n > 0);
    value.ok_or_else(|| args.wrong(i, needed))
}

/// A number of devices; what is too large stays too large.
fn count(args: &Args<'_>, i: usize) -> Result<usize, EvalError> {
    let value = u64::try_from(args.int(i)?);
    let value = value.map_err(|_| args.wrong(i, "a number of devices"))?;
    Ok(clamp(value))
}

fn clamp(devices: u64) -> usize {
    usize::try_from(devices).unwrap_or(usize::MAX)
}
