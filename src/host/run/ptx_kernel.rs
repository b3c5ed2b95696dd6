//! Any PTX text, with an entry, a grid and a block given by hand.

use std::fmt;
use std::sync::Arc;

use layout_codegen::prove::AccessProof;

use super::error::RunError;
use super::runnable::{Launches, Param, ParamType, Runnable, Scalars, Step, StepArg};

type Grid = Arc<dyn Fn(&Scalars<'_>) -> Result<[u32; 3], RunError> + Send + Sync>;

/// An entry of any PTX text. Its parameters are read from the text.
///
/// PTX says little of them: `.u64` may be an address or a number, and an address has no element type. [`PtxKernel::param`] says more.
///
/// ```
/// use tilewright::host::{Arg, BufferType, On, Param, ParamType, PtxKernel, run};
///
/// let text = r"
/// .version 8.0
/// .target sm_80
/// .address_size 64
/// .visible .entry fill(.param .u64 out, .param .u32 n) {
///     .reg .pred %p<1>; .reg .b32 %r<5>; .reg .b64 %d<3>;
///     ld.param.u64 %d0, [out]; ld.param.u32 %r0, [n];
///     mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.s32 %r3, %r2, 64, %r1;
///     setp.ge.u32 %p0, %r3, %r0; @%p0 ret;
///     mul.wide.u32 %d1, %r3, 4; add.s64 %d2, %d0, %d1; st.global.u32 [%d2], %r3;
///     ret;
/// }";
/// let fill = PtxKernel::new(text, "fill")?
///     .param(Param::pointer("out", BufferType::U32))?
///     .param(Param::new("n", ParamType::U32).in_range(0..=1 << 31))?
///     .block([64, 1, 1])
///     .grid_by(|scalars| Ok([scalars.size("n")?.div_ceil(64) as u32, 1, 1]));
/// let outcome = run(&fill, On::Emulator, [("n", Arg::from(100_u32)), ("out", Arg::output::<u32>(100))])?;
/// outcome.assert_clean();
/// assert_eq!(outcome.get::<u32>("out")?[99], 99);
///
/// let error = run(&fill, On::Emulator, [("n", Arg::from(100_u32)), ("out", Arg::output::<f32>(100))]).unwrap_err();
/// assert_eq!(error.to_string(), "`out` takes a buffer of u32, and a buffer of f32 is given");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct PtxKernel {
    ptx: String,
    entry: String,
    params: Vec<Param>,
    grid: Grid,
    block: [u32; 3],
    cluster: [u32; 3],
    shared_bytes: u32,
    accesses: Vec<AccessProof>,
}

impl fmt::Debug for PtxKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PtxKernel")
            .field("entry", &self.entry)
            .field("params", &self.params)
            .field("block", &self.block)
            .field("cluster", &self.cluster)
            .field("shared_bytes", &self.shared_bytes)
            .finish_non_exhaustive()
    }
}

impl PtxKernel {
    /// The entry of this name, launched as one block of 32 threads.
    ///
    /// # Errors
    ///
    /// [`RunError::Text`] if the text has no such entry, or a parameter of it cannot be read.
    pub fn new(ptx: impl Into<String>, entry: impl Into<String>) -> Result<Self, RunError> {
        let (ptx, entry) = (ptx.into(), entry.into());
        let params = read_params(&ptx, &entry).map_err(|reason| RunError::Text { reason })?;
        Ok(Self {
            ptx,
            entry,
            params,
            grid: Arc::new(|_| Ok([1, 1, 1])),
            block: [32, 1, 1],
            cluster: [1, 1, 1],
            shared_bytes: 0,
            accesses: Vec::new(),
        })
    }

    /// The same with this many blocks along x, y, z.
    #[must_use]
    pub fn grid(self, grid: [u32; 3]) -> Self {
        self.grid_by(move |_| Ok(grid))
    }

    /// The same with as many blocks as the scalar arguments make. A grid with a 0 launches nothing.
    #[must_use]
    pub fn grid_by(
        mut self,
        grid: impl Fn(&Scalars<'_>) -> Result<[u32; 3], RunError> + Send + Sync + 'static,
    ) -> Self {
        self.grid = Arc::new(grid);
        self
    }

    /// The same with blocks of this many threads along x, y, z.
    #[must_use]
    pub fn block(self, block: [u32; 3]) -> Self {
        Self { block, ..self }
    }

    /// The same with clusters of this many blocks along x, y, z.
    #[must_use]
    pub fn cluster(self, cluster: [u32; 3]) -> Self {
        Self { cluster, ..self }
    }

    /// The same with this much dynamic shared memory.
    #[must_use]
    pub fn shared_bytes(self, shared_bytes: u32) -> Self {
        Self {
            shared_bytes,
            ..self
        }
    }

    /// The same with more said of a parameter: its type, its range, its alignment.
    ///
    /// # Errors
    ///
    /// [`RunError::Text`] if the entry has no parameter of this name.
    pub fn param(mut self, param: Param) -> Result<Self, RunError> {
        let Some(known) = self.params.iter_mut().find(|p| p.name == param.name) else {
            let names: Vec<&str> = self.params.iter().map(|p| p.name.as_str()).collect();
            return Err(RunError::Text {
                reason: format!(
                    "`{}` has no parameter `{}`; it has: {}",
                    self.entry,
                    param.name,
                    names.join(", ")
                ),
            });
        };
        *known = param;
        Ok(self)
    }

    /// The same with a shared access whose cost is known: the instructions are those that end in a comment with its name.
    ///
    /// ```
    /// use tilewright::codegen::prove::AccessProof;
    /// use tilewright::host::{On, PtxKernel, run};
    ///
    /// // Lane i stores the word at byte 8i: lanes i and i + 16 meet in a bank.
    /// let text = ".version 8.0\n.target sm_80\n.address_size 64\n\
    ///     .visible .entry strided() {\n\
    ///     .shared .align 16 .b8 tile[256];\n\
    ///     .reg .b32 %r<4>;\n\
    ///     mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 3; mov.u32 %r2, tile; add.s32 %r3, %r2, %r1;\n\
    ///     st.shared.u32 [%r3], %r0; // write\n\
    ///     ret;\n}\n";
    /// let claim = |wavefronts| AccessProof {
    ///     access: "write".to_owned(), op: "st.32".parse().unwrap(), wavefronts, ideal: 1, exact: true,
    /// };
    /// let kernel = PtxKernel::new(text, "strided")?;
    /// let two = run(&kernel.clone().access(claim(2)), On::Emulator, [])?;
    /// two.assert_counted_as_proven();
    /// let one = run(&kernel.access(claim(1)), On::Emulator, [])?;
    /// assert_eq!(
    ///     one.counted_as_proven().unwrap_err().to_string(),
    ///     "`strided` on the emulator: the access `write` took 2 wavefronts, and 1 are proven",
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn access(mut self, access: AccessProof) -> Self {
        self.accesses.push(access);
        self
    }
}

impl Runnable for PtxKernel {
    fn ptx(&self) -> &str {
        &self.ptx
    }

    fn entry(&self) -> &str {
        &self.entry
    }

    fn params(&self) -> Vec<Param> {
        self.params.clone()
    }

    fn launches(&self, scalars: &Scalars<'_>) -> Result<Launches, RunError> {
        let grid = (self.grid)(scalars)?;
        if grid.contains(&0) {
            return Ok(Launches::default());
        }
        let names = self.params.iter().map(|p| p.name.clone());
        let step = Step {
            entry: self.entry.clone(),
            grid,
            block: self.block,
            cluster: self.cluster,
            shared_bytes: self.shared_bytes,
            args: names.map(StepArg::Argument).collect(),
        };
        Ok(Launches {
            steps: vec![step],
            ..Launches::default()
        })
    }

    fn accesses(&self) -> Vec<AccessProof> {
        self.accesses.clone()
    }
}

/// The text without comments.
fn without_comments(ptx: &str) -> String {
    let (mut text, mut rest) = (String::with_capacity(ptx.len()), ptx);
    while let Some(at) = rest.find("//").into_iter().chain(rest.find("/*")).min() {
        text.push_str(&rest[..at]);
        let end = if rest[at..].starts_with("//") {
            rest[at..].find('\n')
        } else {
            rest[at..].find("*/").map(|end| end + 2)
        };
        rest = end.map_or("", |end| &rest[at + end..]);
        text.push(' ');
    }
    text + rest
}

/// The parameters of an entry, as its text declares them.
pub(super) fn read_params(ptx: &str, entry: &str) -> Result<Vec<Param>, String> {
    let text = without_comments(ptx);
    let mut names = Vec::new();
    for rest in text.split(".entry").skip(1) {
        let rest = rest.trim_start();
        let end = rest.find(|c: char| c.is_whitespace() || "({;".contains(c));
        let (name, rest) = rest.split_at(end.unwrap_or(rest.len()));
        if name != entry {
            names.push(name);
            continue;
        }
        let Some(list) = rest.trim_start().strip_prefix('(') else {
            return Ok(Vec::new());
        };
        let list = list.split(')').next().unwrap_or_default();
        let declared = list.split(',').filter(|one| !one.trim().is_empty());
        return declared.map(read_param).collect();
    }
    Err(if names.is_empty() {
        format!("the text has no entry `{entry}`; it has none at all")
    } else {
        format!(
            "the text has no entry `{entry}`; it has: {}",
            names.join(", ")
        )
    })
}

/// `.param .u64 .ptr .global .align 16 x` or `.param .align 8 .b8 x[16]`.
fn read_param(text: &str) -> Result<Param, String> {
    let unreadable = || format!("the parameter `{}` cannot be read", text.trim());
    let (declared, count) = match text.split_once('[') {
        None => (text, None),
        Some((declared, rest)) => {
            let count = rest
                .split(']')
                .next()
                .and_then(|n| n.trim().parse::<u32>().ok());
            (declared, Some(count.ok_or_else(unreadable)?))
        }
    };
    let words: Vec<&str> = declared.split_whitespace().collect();
    let (Some(&".param"), Some(&name)) = (words.first(), words.last()) else {
        return Err(unreadable());
    };
    // A type, and no name behind it.
    if name.starts_with('.') {
        return Err(unreadable());
    }
    let kind = words.iter().find_map(|word| {
        let (class, bits) = word.strip_prefix('.')?.split_at_checked(1)?;
        let bits: u32 = bits.parse().ok()?;
        "usfb".contains(class).then_some((class, bits / 8))
    });
    let (class, bytes) = kind.ok_or_else(unreadable)?;
    let ty = match (class, bytes, count) {
        (_, bytes, Some(count)) => ParamType::Bits(bytes.saturating_mul(count)),
        _ if words.contains(&".ptr") => ParamType::Pointer(None),
        ("u" | "s", bytes @ (4 | 8), None) => ParamType::Integer(bytes),
        ("f", 4, None) => ParamType::F32,
        ("f", 8, None) => ParamType::F64,
        (_, bytes, None) => ParamType::Bits(bytes),
    };
    Ok(Param::new(name, ty))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_from_the_text() {
        let text = "
.version 8.0 // .entry none(.param .u32 x)
/* .entry none2( */ .visible .entry first() { ret; }
.visible .entry second (
    .param .u64 .ptr .global .align 16 a, // the matrix, with a comment
    .param .u64 b,
    .param .b32 c, .param .f64 d,
    .param .align 64 .b8 map[128],
    .param .s32 e, .param .b16 h
)
.maxntid 128
{ ret; }
.entry third { ret; }";
        let types = |entry| -> Vec<(String, ParamType)> {
            let params = read_params(text, entry).expect("readable");
            params.into_iter().map(|p| (p.name, p.ty)).collect()
        };
        assert_eq!(types("first"), []);
        assert_eq!(types("third"), []);
        let expected = [
            ("a", ParamType::Pointer(None)),
            ("b", ParamType::Integer(8)),
            ("c", ParamType::Bits(4)),
            ("d", ParamType::F64),
            ("map", ParamType::Bits(128)),
            ("e", ParamType::Integer(4)),
            ("h", ParamType::Bits(2)),
        ];
        assert_eq!(
            types("second"),
            expected.map(|(name, ty)| (name.to_owned(), ty))
        );
        assert_eq!(
            read_params(text, "none"),
            Err("the text has no entry `none`; it has: first, second, third".to_owned())
        );
        for bad in [
            ".entry e(.param .u64)",
            ".entry e(.param x)",
            ".entry e(.reg .b32 x)",
            ".entry e(.param .b8 x[y])",
        ] {
            let error = read_params(bad, "e").expect_err(bad);
            assert!(error.contains("cannot be read"), "{error}");
        }
    }
}
