//! Kinds of plans that measurements rule out, whatever the model estimates.

use super::model::power::stays_close;
use super::model::{LINE, SECTOR};
use crate::gemm::scheduler::GROUP;
use crate::gemm::{Config, Gemm, Order, Schedule, Scheduler};

/// The longest rows along k, in bytes, for which linear schedules were faster.
const MOST_BYTES_LINEAR: u64 = 18_432;

/// The smallest C, in elements, for which linear schedules were faster.
const LEAST_LINEAR: u64 = 5120 * 5120;

/// The largest k for which ping-pong schedules in rectangles of blocks were faster in products of 16-bit elements.
const MOST_K_PING_PONG: u64 = 1024;

/// The smallest product of 8-bit types and tf32, in multiply-adds, for which ping-pong schedules in rectangles of blocks were not faster.
const LEAST_NOT_PING_PONG: u64 = 4096 * 4096 * 4096;

/// The smallest product for which clusters of 8-bit types were faster whatever their rows are. At 4096³ they had 0.94 to 1.02 of cuBLAS, and plans without
/// clusters 0.97 to 1.03; at 6816×3840×3456 they were 6 % faster.
const LEAST_SHARED: u64 = 4352 * 4352 * 4352;

/// The same of tf32 where A and B are multiplied as they lie. With B transposed first, products with A and B swapped with three stages are faster: 3.06 to 3.16 instead of 3.13 to 3.26 ms at 8192³, 24.6 instead of
/// 24.8 to 25.0 at 16384³.
const LEAST_SHARED_TF32: u64 = 8192 * 8192 * 8192;

/// The smallest product for which fewer stages were faster, and in 16-bit types clusters with them: at 4096³ they are as fast as others.
const LEAST_CLOSE: u64 = 6144 * 6144 * 6144;

/// Whether a plan is no faster than a simpler one, by measurements on an H100. Such a plan ranks behind all others: it is chosen by name, or by findings.
///
/// * Clusters are 3 to 18 % faster than their tile without where the operand that blocks share has rows that do not begin with sectors, of which the cache
///   gives few boxes. Elsewhere they are as fast, or up to 3 % slower. The exceptions are large products by persistent blocks, of 8-bit types, of tf32, and of 16-bit types with fewer
///   stages: those take 0 to 6 % less time, at 16384³ in s8 12 %.
/// * Fewer stages save power, which large products run out of: 1 to 2 % of the time at 6144³ to 16384³ in f16 and bf16, with clusters of two, and 3 to 4 % in tf32.
/// * Ping-pong schedules gain 3 to 6 % in bf16 for k up to 1,024, where storing takes a large part of the time. Beyond that they are as fast at 4096³ and slower elsewhere:
///   half a tile reads more from the cache for each product (2048³ 0.96 instead of 0.99 of cuBLAS, 4095×4097×4093 0.322 instead of 0.259 ms).
///   In 8-bit types and tf32 they are slower where the GPU is at its power limit: 0.1182 instead of 0.1084 ms at 4096³ in s8, 7.75 instead of 5.98 at 16384³.
/// * Linear schedules of 8-bit types are up to 28 % faster from 5120² on than rectangles of blocks that leave multiprocessors out, and lose 15 % at 4096³.
pub(super) fn gains_nothing(config: &Config, schedule: Schedule, problem: &Gemm) -> bool {
    if config.parts_of_tile() > 1 && !ping_pong_gains(config, schedule, problem) {
        return true;
    }
    (stays_close(config) && products(problem) < LEAST_CLOSE)
        || (config.cluster_blocks() > 1 && !clusters_gain(config, schedule, problem))
}

/// The multiply-adds of a problem.
fn products(problem: &Gemm) -> u64 {
    problem
        .m
        .saturating_mul(problem.n)
        .saturating_mul(problem.k)
}

fn clusters_gain(config: &Config, schedule: Schedule, problem: &Gemm) -> bool {
    let bytes = u64::from(config.data_type.bytes());
    let within_sectors =
        |ld: u64| !schedule.pack && !ld.saturating_mul(bytes).is_multiple_of(SECTOR);
    let [rows, columns] = config.cluster;
    let shares = |blocks: u32, ld: u64| blocks > 1 && within_sectors(ld);
    let least = match bytes {
        1 => LEAST_SHARED,
        4 if config.transposed(problem.operands) == [false; 2] => LEAST_SHARED_TF32,
        _ if stays_close(config) => LEAST_CLOSE,
        _ => u64::MAX,
    };
    let large = config.scheduler.is_persistent() && products(problem) >= least;
    large || shares(rows, problem.ldb) || shares(columns, problem.lda)
}

/// Whether a ping-pong schedule was faster in products of this kind. They ask the cache for more than others, and it gives that where A and B are multiplied as they lie, rows
/// begin lines, and tiles fill C. In random products of 8-bit types with more than 24 steps along k they took 1.19 times as long as 128×256 tiles.
fn ping_pong_gains(config: &Config, schedule: Schedule, problem: &Gemm) -> bool {
    let bytes = u64::from(config.data_type.bytes());
    let in_lines = |ld: u64| ld.saturating_mul(bytes).is_multiple_of(LINE);
    if schedule.pack || !in_lines(problem.lda) || !in_lines(problem.ldb) {
        return false;
    }
    let elements = problem.m.saturating_mul(problem.n);
    if config.scheduler == Scheduler::Persistent(Order::Linear) {
        let group = GROUP.saturating_mul(config.rows_of_stage().into());
        return problem.m.is_multiple_of(group)
            && problem.k.saturating_mul(bytes) <= MOST_BYTES_LINEAR
            && elements >= LEAST_LINEAR;
    }
    let [rows, columns, _] = config.tile;
    problem.m.is_multiple_of(rows.into())
        && problem.n.is_multiple_of(columns.into())
        && if bytes == 2 {
            problem.k <= MOST_K_PING_PONG
        } else {
            products(problem) < LEAST_NOT_PING_PONG
        }
}
