//! A reader of AMD assembly: the main loop of a kernel, counted by kinds of instructions.
//!
//! A main loop is the code from a label to a branch back to it with no other branch in between; of several, the one with the most fused
//! multiply-adds, and of those the first. Each instruction is of one kind, by its mnemonic:
//!
//! ```text
//! v_fma_f64 v_fmac_f64 v_fma_f32 v_fmac_f32 v_pk_fma_f32     fma          ds_read_*            LDS load
//! any other v_*                                              VALU         ds_*                 LDS store
//! s_waitcnt                                                  wait         buffer_load_* global_load_*     vector memory load
//! any other s_*                                              scalar       other buffer_* global_* flat_*  vector memory store
//! ```

use std::collections::HashMap;

/// Instructions of a main loop by kind.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Counts {
    pub(crate) fma: usize,
    /// Of these, in f64.
    pub(crate) fma_f64: usize,
    pub(crate) lds_loads: usize,
    pub(crate) lds_stores: usize,
    pub(crate) memory_loads: usize,
    pub(crate) memory_stores: usize,
    pub(crate) valu: usize,
    pub(crate) scalar: usize,
    pub(crate) waits: usize,
}

impl Counts {
    pub(crate) fn all(&self) -> usize {
        let useful = self.fma + self.lds_loads + self.memory_loads;
        let stores = self.lds_stores + self.memory_stores;
        useful + stores + self.valu + self.scalar + self.waits
    }

    /// The share that is neither a multiply-add nor a load.
    pub(crate) fn others(&self) -> f64 {
        let useful = self.fma + self.lds_loads + self.memory_loads;
        (self.all() - useful) as f64 / self.all() as f64
    }

    fn count(&mut self, mnemonic: &str) {
        let starts = |all: &[&str]| all.iter().any(|s| mnemonic.starts_with(s));
        let one = if starts(&["v_fma_f64", "v_fmac_f64"]) {
            self.fma_f64 += 1;
            &mut self.fma
        } else if starts(&["v_fma_f32", "v_fmac_f32", "v_pk_fma_f32", "v_mac_f32"]) {
            &mut self.fma
        } else if starts(&["s_waitcnt"]) {
            &mut self.waits
        } else if starts(&["ds_read"]) {
            &mut self.lds_loads
        } else if starts(&["ds_"]) {
            &mut self.lds_stores
        } else if starts(&["buffer_load", "global_load", "flat_load", "s_load"]) {
            &mut self.memory_loads
        } else if starts(&["buffer_", "global_", "flat_", "scratch_"]) {
            &mut self.memory_stores
        } else if starts(&["v_"]) {
            &mut self.valu
        } else {
            &mut self.scalar
        };
        *one += 1;
    }
}

/// What an assembly says of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Assembly {
    pub(crate) main_loop: Counts,
    /// Vector registers of a thread.
    pub(crate) registers: usize,
    /// Bytes of scratch memory of a thread: there are some if registers are spilled.
    pub(crate) scratch: usize,
}

/// Reads the assembly of one kernel.
pub(crate) fn read(text: &str) -> Assembly {
    let mut code: Vec<&str> = Vec::new();
    let mut labels: HashMap<&str, usize> = HashMap::new();
    for line in text.lines() {
        let line = line.split(';').next().unwrap_or("").trim();
        match line.split_once(':') {
            Some((label, _)) if !label.contains(char::is_whitespace) => {
                labels.insert(label, code.len());
            }
            _ if line.is_empty() || line.starts_with('.') => {}
            _ => code.push(line),
        }
    }
    let branch = |line: &str| line.starts_with("s_cbranch") || line.starts_with("s_branch");
    let mut main_loop = Counts::default();
    for (end, line) in code.iter().enumerate().filter(|(_, line)| branch(line)) {
        let target = line.split_whitespace().nth(1).unwrap_or("");
        let Some(&start) = labels.get(target).filter(|&&start| start <= end) else {
            continue;
        };
        let body = &code[start..=end];
        if body.iter().filter(|line| branch(line)).count() > 1 {
            continue;
        }
        let mut counts = Counts::default();
        for line in body {
            counts.count(line.split_whitespace().next().unwrap_or(""));
        }
        if counts.fma > main_loop.fma {
            main_loop = counts;
        }
    }
    Assembly {
        main_loop,
        registers: stated(text, "; NumVgprs: "),
        scratch: stated(text, "; ScratchSize: "),
    }
}

/// The number that the compiler states behind a name.
fn stated(text: &str, name: &str) -> usize {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.trim().parse().ok());
    number.unwrap_or_else(|| panic!("the assembly states no `{name}`"))
}

#[test]
fn a_loop_is_found_and_counted() {
    let text = "\
kernel:
\ts_load_dwordx2 s[0:1], s[4:5], 0x0
.LBB0_1:                                ; =>This Inner Loop Header
\tds_read_b128 v[0:3], v9
\tglobal_load_dwordx4 v[4:7], v[8:9], off
\ts_waitcnt lgkmcnt(0)
\tv_fma_f64 v[10:11], v[0:1], v[2:3], v[10:11]
\tv_fmac_f64_e32 v[12:13], v[0:1], v[2:3]
\tv_add_u32_e32 v9, 8, v9
\tds_write_b128 v9, v[4:7]
\ts_cbranch_scc0 .LBB0_1
; %bb.2:
.LBB0_3:
\tv_fma_f64 v[10:11], v[0:1], v[2:3], v[10:11]
\ts_cbranch_scc0 .LBB0_3
\ts_endpgm
; NumVgprs: 14
; ScratchSize: 0
";
    let read = read(text);
    let expected = Counts {
        fma: 2,
        fma_f64: 2,
        lds_loads: 1,
        lds_stores: 1,
        memory_loads: 1,
        memory_stores: 0,
        valu: 1,
        scalar: 1,
        waits: 1,
    };
    assert_eq!(
        (read.main_loop, read.registers, read.scratch),
        (expected, 14, 0)
    );
    assert!((read.main_loop.others() - 0.5).abs() < 1e-9);
}
