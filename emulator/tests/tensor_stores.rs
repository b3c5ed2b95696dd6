//! Tensor stores whose extent is not a multiple of 16 bytes: the bytes that an H100 wrote (`fixtures/h100/tensor_store_edges.csv`), row for row, and that all checks know of them.

mod common;

use common::{assembles, kernel};
use ptx_emulator::{
    Arg, FindingKind, GlobalMemory, Launch, Module, Options, Report, TensorElement, TensorMap,
    TensorSwizzle, run,
};

/// Rows of the box, and of them in the array.
const BOX_ROWS: usize = 4;
const ROWS: usize = 2;

/// What memory is full of before; no byte of the box is.
const BEFORE: u8 = 0xee;

/// A kernel of 128 threads that fills the 512 bytes of a box, [`source`] byte for byte, and stores it at column 0; block 1 does `other` alone, and thread 0 of
/// block 0 `after` behind the wait. Threads from `filled` on fill nothing.
fn text(instruction: &str, filled: u32, other: &str, after: &str) -> String {
    kernel(
        ".param .u64 out, .param .align 64 .b8 map[128]",
        &format!(
            ".reg .b32 %r<6>, %t;
    .reg .b64 %out, %map;
    .reg .pred %first, %second, %p0;
    .shared .align 1024 .b8 data[512];
    ld.param.u64 %out, [out];
    mov.b64 %map, map;
    cvta.param.u64 %map, %map;
    mov.u32 %t, %tid.x;
    mov.u32 %r0, %ctaid.x;
    setp.ne.u32 %second, %r0, 0;
    @%second bra OTHER;
    setp.eq.u32 %first, %t, 0;
    setp.lt.u32 %p0, %t, {filled};
    mov.u32 %r1, data;
    mad.lo.u32 %r1, %t, 4, %r1;
    mad.lo.u32 %r2, %t, 0x01010101, 0x60402000;
    @%p0 st.shared.u32 [%r1], %r2;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @!%first bra END;
    mov.u32 %r3, 0;
    {instruction} [%map, {{%r3, %r3}}], [data];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    {after}
    bra END;
OTHER:
    {other}
END:"
        ),
    )
}

const STORE: &str = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group";

/// Byte `at` of shared memory.
fn source(at: usize) -> u8 {
    (at / 4 + 32 * (at % 4)) as u8
}

struct Case {
    element: TensorElement,
    swizzle: TensorSwizzle,
    /// Bytes from one row of the matrix to the next.
    pitch: u64,
    /// Elements of a row of the box, and of the array.
    inner: u32,
    n: u64,
}

impl Case {
    /// Stores the box into `bytes` bytes of memory: what is there then.
    fn run(&self, text: &str, bytes: usize, grid: u32, options: &Options) -> (Report, Vec<u8>) {
        let module = Module::parse_strict(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let mut memory = GlobalMemory::new();
        let out = memory.alloc(bytes as u64, 256).expect("memory");
        if !options.undefined_global {
            memory.write(out, &vec![BEFORE; bytes]).expect("a write");
        }
        let map = TensorMap {
            sizes: vec![self.n, ROWS as u64],
            strides: vec![self.pitch],
            box_sizes: vec![self.inner, BOX_ROWS as u32],
            swizzle: self.swizzle,
            ..TensorMap::new(self.element, out)
        };
        let launch = Launch {
            grid: [grid, 1, 1],
            block: [128, 1, 1],
            args: vec![
                Arg::Ptr(out),
                Arg::Bytes(map.encode().expect("a correct map").to_vec()),
            ],
            ..Launch::default()
        };
        let report = run(&module, "k", &launch, &mut memory, options).expect("a launch");
        (report, memory.read(out, bytes).expect("a read"))
    }

    /// Where byte `b` of row `r` of the box is in shared memory: with the swizzle, chunk j of row r lies at chunk j xor r.
    fn place(&self, r: usize, b: usize) -> usize {
        match self.swizzle {
            TensorSwizzle::Bytes128 => 128 * r + 16 * ((b / 16) ^ r) + b % 16,
            _ => self.inner as usize * self.element.bytes() as usize * r + b,
        }
    }
}

/// Rows of 13 halves, 26 bytes, that begin 128 bytes apart.
const THIRTEEN: Case = Case {
    element: TensorElement::F16,
    swizzle: TensorSwizzle::Bytes128,
    pitch: 128,
    inner: 64,
    n: 13,
};

fn kinds(report: &Report) -> Vec<FindingKind> {
    report.findings.iter().map(|f| f.kind).collect()
}

#[test]
fn stores_write_the_chunks_that_an_h100_writes() {
    let text = text(STORE, 128, "", "");
    assembles("tensor_store_edges", &text);
    let table = include_str!("fixtures/h100/tensor_store_edges.csv");
    let lines = table.lines().filter(|l| !l.starts_with('#')).skip(1);
    let mut count = 0;
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let named = |(_, name): &&(TensorElement, &str)| *name == fields[0];
        let (element, _) = *TensorElement::ALL.iter().find(named).expect("a type");
        let swizzle = match fields[1] {
            "0" => TensorSwizzle::None,
            "128" => TensorSwizzle::Bytes128,
            other => panic!("a swizzle of {other}"),
        };
        let number = |k: usize| fields[k].parse::<usize>().expect("a number");
        let case = Case {
            element,
            swizzle,
            pitch: number(2) as u64 * element.bytes(),
            inner: number(3) as u32,
            n: number(4) as u64,
        };
        let (extent, end, pitch) = (number(5), number(6), case.pitch as usize);
        assert_eq!(extent as u64, case.n * element.bytes(), "{line}");
        let (report, got) = case.run(&text, BOX_ROWS * pitch, 1, &Options::default());
        for (at, byte) in got.iter().enumerate() {
            let (r, b) = (at / pitch, at % pitch);
            let want = if r < ROWS && b < end {
                source(case.place(r, b))
            } else {
                BEFORE
            };
            assert_eq!(*byte, want, "{line}: byte {b} of row {r}");
        }
        if end == extent {
            assert!(report.is_clean(), "{line}: {:#?}", report.findings);
        } else {
            assert_eq!(kinds(&report), [FindingKind::TensorEdge], "{line}");
            let says = format!(
                "the extent of {extent} bytes is not a multiple of 16, and {} bytes behind it are written in each of 2 rows from [0, 0] on",
                end - extent
            );
            let message = &report.findings[0].message;
            assert!(message.contains(&says), "{line}: {message}");
        }
        count += 1;
    }
    assert_eq!(count, 16);
}

#[test]
fn bytes_behind_the_extent_have_bounds() {
    // The last row is allocated up to its extent, and up to the end of its last chunk.
    let text = text(STORE, 128, "", "");
    let (report, got) = THIRTEEN.run(&text, 128 + 26, 1, &Options::default());
    assert_eq!(
        kinds(&report),
        [FindingKind::OutOfBounds, FindingKind::TensorEdge]
    );
    let message = &report.findings[0].message;
    let says = "6 bytes at byte 154 of an allocation of 154 bytes";
    assert!(message.contains(says), "{message}");
    assert_eq!(got[128 + 25], source(THIRTEEN.place(1, 25)));
    let (report, _) = THIRTEEN.run(&text, 128 + 32, 1, &Options::default());
    assert_eq!(kinds(&report), [FindingKind::TensorEdge]);
}

#[test]
fn bytes_behind_the_extent_count_as_written() {
    let options = Options {
        undefined_global: true,
        ..Options::default()
    };
    let edge = FindingKind::TensorEdge;
    for (byte, found) in [
        (31, vec![edge]),
        (32, vec![edge, FindingKind::UndefinedGlobal]),
    ] {
        let text = text(
            STORE,
            128,
            "",
            &format!("ld.global.u8 %r4, [%out+{byte}]; st.global.u8 [%out+400], %r4;"),
        );
        let (report, _) = THIRTEEN.run(&text, 512, 1, &options);
        assert_eq!(kinds(&report), found, "byte {byte}");
    }
}

#[test]
fn bytes_behind_the_extent_race() {
    let options = Options {
        global_races: true,
        ..Options::default()
    };
    for (byte, races) in [(28, true), (32, false)] {
        let text = text(STORE, 128, &format!("st.global.u32 [%out+{byte}], 7;"), "");
        let (report, _) = THIRTEEN.run(&text, 512, 2, &options);
        let found = kinds(&report);
        assert!(found.contains(&FindingKind::TensorEdge), "{found:?}");
        assert_eq!(
            found.contains(&FindingKind::GlobalRace),
            races,
            "byte {byte}: {:#?}",
            report.findings
        );
    }
}

#[test]
fn bytes_behind_the_extent_are_read_from_the_box() {
    // Without a swizzle, the 26 bytes of a row of the box are in its words 0 to 6, and its word 7 ends the chunk.
    let short = Case {
        swizzle: TensorSwizzle::None,
        ..THIRTEEN
    };
    // Row 1 of the box begins at word 32.
    for (filled, found) in [
        (
            32 + 7,
            vec![FindingKind::UndefinedShared, FindingKind::TensorEdge],
        ),
        (32 + 8, vec![FindingKind::TensorEdge]),
    ] {
        let (report, _) = short.run(&text(STORE, filled, "", ""), 512, 1, &Options::default());
        assert_eq!(kinds(&report), found, "{filled} words");
    }
}

/// Not measured: a reduction is taken to leave alone what lies behind the extent.
#[test]
fn reductions_end_at_the_element() {
    let reduce = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.and.bulk_group";
    let case = Case {
        element: TensorElement::U32,
        swizzle: TensorSwizzle::None,
        pitch: 128,
        inner: 16,
        n: 5,
    };
    let (report, got) = case.run(&text(reduce, 128, "", ""), 512, 1, &Options::default());
    assert!(report.is_clean(), "{:#?}", report.findings);
    for (at, byte) in got.iter().enumerate() {
        let (r, b) = (at / 128, at % 128);
        let want = if r < ROWS && b < 20 {
            BEFORE & source(case.place(r, b))
        } else {
            BEFORE
        };
        assert_eq!(*byte, want, "byte {b} of row {r}");
    }
}
