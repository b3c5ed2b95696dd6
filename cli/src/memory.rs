//! Whether a product and its check, or the buffers of a run, fit into the host's memory: asked before anything is allocated.
//!
//! What is free is the least of what the machine has, what the limit on the process's address space leaves (`ulimit -v`), and what its
//! control group leaves.

use std::path::Path;

use tilewright::kernels::gemm::{DataType, Gemm};

use crate::error::CliError;

/// An operand's elements: those of one matrix, and of all with what lies between them; and the bytes of each.
struct Elements {
    one: u128,
    all: u128,
    bytes: u128,
}

/// A, B and C.
fn operands(problem: &Gemm, data_type: DataType) -> [Elements; 3] {
    let (operand, result) = (data_type.bytes(), problem.result(data_type).bytes());
    let [stride_a, stride_b, stride_c] = problem.batch.strides;
    [
        (problem.stored_a(), problem.lda, stride_a, operand),
        (problem.stored_b(), problem.ldb, stride_b, operand),
        ((problem.m, problem.n), problem.ldc, stride_c, result),
    ]
    .map(|((rows, cols), ld, stride, bytes)| {
        let none = rows == 0 || cols == 0 || problem.batch.count == 0;
        let one = if none {
            0
        } else {
            u128::from(rows - 1) * u128::from(ld) + u128::from(cols)
        };
        let others = u128::from(problem.batch.count.saturating_sub(1)) * u128::from(stride);
        Elements {
            one,
            all: if none { 0 } else { one.saturating_add(others) },
            bytes: bytes.into(),
        }
    })
}

/// Addresses that a thread reserves: its stack, and what the allocator sets aside for it.
const THREAD: u64 = 66 << 20;

/// What threads, kernels and plans take whatever the sizes.
const WORKING: u128 = 24 << 20;

/// A product that is run and compared whole, with a workspace of so many bytes.
pub(crate) fn for_all(problem: &Gemm, data_type: DataType, workspace: u64) -> Result<(), CliError> {
    // An element lies in memory three times (input, device, result), and for the check the elements of one product of a batch in
    // double precision up to four times, once of them as the absolute value. On the emulator the workspace is filled first.
    let needed = operands(problem, data_type).into_iter().map(|o| {
        o.all
            .saturating_mul(3 * o.bytes)
            .saturating_add(o.one.saturating_mul(4 * 8))
    });
    free_for(needed.fold(u128::from(workspace) * 2, u128::saturating_add))
}

/// A product that runs on a GPU and of which a few rows are compared.
pub(crate) fn for_rows(problem: &Gemm, data_type: DataType) -> Result<(), CliError> {
    // Twice as they are, and B in double precision.
    let all = operands(problem, data_type);
    let needed = all.iter().map(|o| o.all.saturating_mul(2 * o.bytes));
    let reference = all[1].one.saturating_mul(4 * 8);
    free_for(needed.fold(reference, u128::saturating_add))
}

/// Buffers of a run of so many bytes in all. On the emulator each lies in memory three times (content, device, result), with a bit a byte.
pub(crate) fn for_buffers(bytes: u128) -> Result<(), CliError> {
    let needed = bytes.saturating_mul(3).saturating_add(bytes / 8);
    free_or(needed, WORKING / 4, "the buffers")
}

fn free_for(needed: u128) -> Result<(), CliError> {
    free_or(needed, WORKING, "the matrices and their check")
}

/// Refuses `needed` bytes that are not free besides `working` bytes for the rest.
fn free_or(needed: u128, working: u128, what: &str) -> Result<(), CliError> {
    let free = u128::from(free_memory()).saturating_sub(working);
    if needed <= free {
        return Ok(());
    }
    Err(CliError::new(
        "too_large",
        format!(
            "{what} would take {} of memory, and {} are free",
            size(needed, true),
            size(free, false)
        ),
    ))
}

/// GiB with one decimal, as people write them; below one GiB whole MiB, rounded up or down.
fn size(bytes: u128, up: bool) -> String {
    let mebibytes = if up {
        bytes.div_ceil(1 << 20)
    } else {
        bytes >> 20
    };
    if mebibytes < 1 << 10 {
        format!("{mebibytes} MiB")
    } else {
        format!("{} GiB", tenths(bytes))
    }
}

/// GiB with one decimal.
fn tenths(bytes: u128) -> String {
    let tenths = bytes.saturating_mul(10).div_ceil(1 << 30);
    match tenths % 10 {
        0 => (tenths / 10).to_string(),
        rest => format!("{}.{rest}", tenths / 10),
    }
}

/// Bytes of memory that may be used, where the system tells it in files, else 16 GiB.
fn free_memory() -> u64 {
    let all = [of_machine(), of_process(), of_group(Path::new("/"))];
    all.into_iter().flatten().min().unwrap_or(16 << 30)
}

fn of_machine() -> Option<u64> {
    kibibytes("/proc/meminfo", "MemAvailable:")
}

/// What a limit on the address space leaves.
fn of_process() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits
        .lines()
        .find(|l| l.starts_with("Max address space"))?;
    let limit: u64 = line.split_whitespace().nth(3)?.parse().ok()?;
    let left = limit.saturating_sub(kibibytes("/proc/self/status", "VmSize:")?);
    // Each thread that computes reserves addresses for its stack and its own allocations, as far as there are any.
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    Some(left - (threads * THREAD).min(left / 2))
}

/// What the process's control group leaves, and the groups around it: version 2, else version 1. `files` is the root of the file system.
fn of_group(files: &Path) -> Option<u64> {
    let groups = std::fs::read_to_string(files.join("proc/self/cgroup")).ok()?;
    let unified = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let memory = groups
        .lines()
        .find_map(|line| line.split_once(":memory:").map(|(_, path)| path));
    let below = |root: &str, path: &str, limit: &str, used: &str| {
        let root = files.join(root);
        let whole = root.join(path.trim_start_matches('/'));
        let number = |file| {
            std::fs::read_to_string(file)
                .ok()?
                .trim()
                .parse::<u64>()
                .ok()
        };
        let folders = whole
            .ancestors()
            .take_while(|folder| folder.starts_with(&root));
        folders
            .filter_map(|folder| {
                let limit = number(folder.join(limit))?;
                Some(limit.saturating_sub(number(folder.join(used))?))
            })
            .min()
    };
    unified
        .and_then(|path| below("sys/fs/cgroup", path, "memory.max", "memory.current"))
        .or_else(|| {
            let (limit, used) = ("memory.limit_in_bytes", "memory.usage_in_bytes");
            below("sys/fs/cgroup/memory", memory?, limit, used)
        })
}

/// The number behind a word at the start of a line, in KiB.
fn kibibytes(file: &str, word: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(word))?;
    let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use tilewright::kernels::gemm::Operands;

    use super::*;

    #[test]
    fn what_no_machine_holds_is_refused() {
        let square = |n: u64| Gemm::packed(n, n, 64, Operands::ALL[0]);
        assert!(for_rows(&square(64), DataType::F16).is_ok());
        assert!(for_all(&square(0), DataType::F16, 0).is_ok());
        let error = for_rows(&square(1_000_000_000), DataType::F16).expect_err("2 EiB");
        assert_eq!(error.code(), "too_large");
        assert!(for_all(&square(u64::MAX), DataType::F64, u64::MAX).is_err());
        assert!(for_buffers(1 << 20).is_ok());
        let error = for_buffers(1 << 60).expect_err("1 EiB");
        assert!(
            error
                .message()
                .starts_with("the buffers would take 3355443200 GiB of memory, and "),
            "{}",
            error.message()
        );
    }

    /// A file system with `files` under a folder of its own.
    fn tree(name: &str, files: &[(&str, &str)]) -> std::path::PathBuf {
        let root =
            std::env::temp_dir().join(format!("tilewright-groups-{name}-{}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
        root
    }

    #[test]
    fn control_groups_of_both_versions_limit() {
        // Version 2: the least of the group and those around it; "max" is no limit.
        let root = tree(
            "2",
            &[
                ("proc/self/cgroup", "0::/user/build\n"),
                ("sys/fs/cgroup/user/build/memory.max", "max\n"),
                ("sys/fs/cgroup/user/build/memory.current", "1000\n"),
                ("sys/fs/cgroup/user/memory.max", "5000\n"),
                ("sys/fs/cgroup/user/memory.current", "2000\n"),
            ],
        );
        assert_eq!(of_group(&root), Some(3000));
        std::fs::remove_dir_all(root).expect("removed");
        // Version 1, used up.
        let root = tree(
            "1",
            &[
                ("proc/self/cgroup", "3:cpu:/a\n4:memory:/a\n"),
                ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4096\n"),
                ("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "5000\n"),
            ],
        );
        assert_eq!(of_group(&root), Some(0));
        std::fs::remove_dir_all(root).expect("removed");
        // A container that sees its group as the root.
        let root = tree(
            "root",
            &[
                ("proc/self/cgroup", "0::/\n"),
                ("sys/fs/cgroup/memory.max", "100\n"),
                ("sys/fs/cgroup/memory.current", "10\n"),
            ],
        );
        assert_eq!(of_group(&root), Some(90));
        std::fs::remove_dir_all(root).expect("removed");
        assert_eq!(of_group(Path::new("/nowhere")), None);
    }

    #[test]
    fn sizes_are_rounded_up_to_a_tenth() {
        assert_eq!([tenths(0), tenths(1), tenths(3 << 29)], ["0", "0.1", "1.5"]);
    }
}
