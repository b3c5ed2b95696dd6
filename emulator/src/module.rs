//! The public view of parsed PTX: [`Module`], [`Kernel`], [`Param`].

use crate::ast::{Init, ModuleAst, Variable};
use crate::decode;
use crate::error::{ParseError, ParseErrorKind};
use crate::ir::Program;
use crate::parser;
use crate::source::{Lines, SourceLine};
use crate::types::ScalarType;

/// A parsed and decoded module. See [`Module::parse`].
#[derive(Debug, Clone)]
pub struct Module {
    version: String,
    target: String,
    kernels: Vec<Kernel>,
    pub(crate) variables: Vec<ModuleVariable>,
    missing: Vec<ParseError>,
    pub(crate) lines: Lines,
}

/// A `.global` or `.const` variable of a module, with its initial bytes.
#[derive(Debug, Clone)]
pub(crate) struct ModuleVariable {
    pub(crate) name: String,
    pub(crate) is_extern: bool,
    pub(crate) is_managed: bool,
    /// The size is given in the text.
    is_sized: bool,
    pub(crate) align: u32,
    pub(crate) bytes: Vec<u8>,
    pub(crate) pointers: Vec<Pointer>,
}

/// An address in a variable's initial bytes, known only when the variables have their places.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pointer {
    /// Where it stands, and how many of its bytes: the low ones after dropping `shift` bits.
    pub(crate) at: u32,
    pub(crate) bytes: u8,
    pub(crate) shift: u8,
    /// The number of the variable that it points to.
    pub(crate) variable: u32,
    pub(crate) offset: i64,
}

/// A kernel (`.entry`) ready to run.
#[derive(Debug, Clone)]
pub struct Kernel {
    pub(crate) name: String,
    pub(crate) params: Vec<Param>,
    pub(crate) param_bytes: u32,
    pub(crate) max_threads: Option<[u32; 3]>,
    pub(crate) required_threads: Option<[u32; 3]>,
    pub(crate) required_cluster: Option<[u32; 3]>,
    pub(crate) max_cluster: Option<u32>,
    pub(crate) program: Program,
}

/// A parameter of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// Name in the text.
    pub name: String,
    /// Element type.
    pub ty: ScalarType,
    /// Bytes: more than the type's for an array.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
    /// Byte offset in the parameter block.
    pub offset: u32,
    /// Declared with `.ptr`.
    pub is_pointer: bool,
}

impl Module {
    /// Parses PTX text and decodes every kernel in it.
    ///
    /// An instruction of PTX that the emulator lacks is no error here: the file's other kernels run, and so does this one until
    /// it reaches that instruction ([`crate::RunError::Unsupported`]). [`Module::missing`] lists them, and
    /// [`Module::parse_strict`] refuses them.
    ///
    /// # Errors
    ///
    /// [`ParseError`] with line and column: syntax, undeclared names, operands of the wrong size, and words that are no
    /// instructions or modifiers of PTX.
    ///
    /// # Examples
    ///
    /// ```
    /// let text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }";
    /// let module = ptx_emulator::Module::parse(text)?;
    /// assert_eq!(module.kernels().collect::<Vec<_>>(), ["nothing"]);
    /// # Ok::<(), ptx_emulator::ParseError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let ast = parser::parse(text)?;
        let statics = ast.statics();
        let variables = statics
            .iter()
            .map(|v| initial(&ast, &statics, v))
            .collect::<Result<Vec<_>, _>>()?;
        let kernels = ast
            .kernels
            .iter()
            .map(|k| decode::kernel(&ast, k))
            .collect::<Result<Vec<_>, _>>()?;
        for (i, k) in ast.kernels.iter().enumerate() {
            if ast.kernels[..i].iter().any(|other| other.name == k.name) {
                return Err(k.span.error(ParseErrorKind::Redeclared(k.name.to_owned())));
            }
        }
        let mut missing = decode::uncalled(&ast)?;
        for k in &kernels {
            missing.extend_from_slice(&k.program.missing);
        }
        missing.sort_by_key(|e| (e.line, e.column));
        missing.dedup();
        Ok(Self {
            version: ast.version.clone(),
            target: ast.target.clone(),
            kernels,
            variables,
            missing,
            lines: ast.lines,
        })
    }

    /// Like [`Module::parse`], and every instruction that the emulator lacks is an error, reached or not.
    ///
    /// # Errors
    ///
    /// [`ParseError`], of the first such instruction if nothing else is wrong.
    ///
    /// # Examples
    ///
    /// ```
    /// use ptx_emulator::Module;
    /// let text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { .reg .f32 f; .reg .b64 d; tex.cube.v4.f32.f32 {f, f, f, f}, [d, {f, f, f, f}]; ret; }";
    /// assert_eq!(Module::parse(text)?.missing().len(), 1);
    /// assert!(Module::parse_strict(text).is_err());
    /// # Ok::<(), ptx_emulator::ParseError>(())
    /// ```
    pub fn parse_strict(text: &str) -> Result<Self, ParseError> {
        let module = Self::parse(text)?;
        match module.missing.first() {
            None => Ok(module),
            Some(error) => Err(error.clone()),
        }
    }

    /// The instructions that the emulator lacks, in the order of the text.
    pub fn missing(&self) -> &[ParseError] {
        &self.missing
    }

    /// The `.version`, as written.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The first `.target`, such as `sm_80`.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The line of the program that line `line` of the PTX was compiled from, if the text has `.loc` directives.
    ///
    /// # Examples
    ///
    /// ```
    /// let text = "\
    /// .version 8.0
    /// .target sm_80
    /// .address_size 64
    /// .file 1 \"sum.cu\"
    /// .visible .entry sum() {
    /// .loc 1 12 5
    ///     ret;
    /// }";
    /// let module = ptx_emulator::Module::parse(text)?;
    /// assert_eq!(module.source(7).map(|s| s.to_string()).as_deref(), Some("sum.cu:12"));
    /// assert_eq!(module.source(5), None);
    /// # Ok::<(), ptx_emulator::ParseError>(())
    /// ```
    pub fn source(&self, line: u32) -> Option<SourceLine> {
        self.lines.source(line)
    }

    /// The `.global` and `.const` variables, in the order of the text: names, and bytes unless the text leaves the size open.
    pub fn variables(&self) -> impl Iterator<Item = (&str, Option<u64>)> {
        self.variables.iter().map(|v| {
            let bytes = v.is_sized.then_some(v.bytes.len() as u64);
            (v.name.as_str(), bytes)
        })
    }

    /// Names of the kernels, in the order of the text.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.kernels.iter().map(|k| k.name.as_str())
    }

    /// The kernel called `name`.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|k| k.name == name)
    }
}

impl Kernel {
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The parameters, in order.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// Bytes of static shared memory.
    pub fn static_shared(&self) -> u32 {
        self.program.shared_static
    }

    /// `.reqntid`, if given.
    pub fn required_threads(&self) -> Option<[u32; 3]> {
        self.required_threads
    }

    /// `.reqnctapercluster`, if given.
    pub fn required_cluster(&self) -> Option<[u32; 3]> {
        self.required_cluster
    }

    /// `.maxntid`, if given.
    pub fn max_threads(&self) -> Option<[u32; 3]> {
        self.max_threads
    }

    /// Instructions in the text of the kernel and of the functions that it may call, with the return at the end of each.
    pub fn instructions(&self) -> usize {
        self.program.insts.len()
    }
}

/// The initial bytes of variable `v`, with the pointers that `run` fills in.
fn initial(
    ast: &ModuleAst<'_>,
    statics: &[&Variable<'_>],
    v: &Variable<'_>,
) -> Result<ModuleVariable, ParseError> {
    let mut bytes = vec![0u8; v.size.unwrap_or(0) as usize];
    let mut pointers = Vec::new();
    let width = v.ty.bytes().min(8) as usize;
    let element = v.ty.bytes() as usize;
    for (at, init) in &v.init {
        let start = *at as usize * element;
        let bits = match (*init, v.ty) {
            (Init::Int(i), ScalarType::F32) => u64::from((i as f32).to_bits()),
            (Init::Int(i), ScalarType::F64) => (i as f64).to_bits(),
            (Init::Int(i), _) => i as u64,
            (Init::Float(x), ScalarType::F64 | ScalarType::B64) => x.to_bits(),
            (Init::Float(x), _) => u64::from((x as f32).to_bits()),
            (
                Init::Symbol {
                    name,
                    span,
                    offset,
                    shift,
                },
                _,
            ) => {
                let shift = shift.unwrap_or(0);
                if let Some(number) = ast.function(name) {
                    let address = crate::ir::function_address(number as u32);
                    address.wrapping_add(offset as u64) >> shift
                } else {
                    // A definition counts before its `.extern` declaration.
                    let find = |is_extern: bool| {
                        statics
                            .iter()
                            .position(|s| s.name == name && s.is_extern == is_extern)
                    };
                    let Some(variable) = find(false).or_else(|| find(true)) else {
                        return Err(span.error(ParseErrorKind::Undeclared(name.to_owned())));
                    };
                    pointers.push(Pointer {
                        at: start as u32,
                        bytes: width as u8,
                        shift,
                        variable: variable as u32,
                        offset,
                    });
                    0
                }
            }
        };
        if let Some(place) = bytes.get_mut(start..start + width) {
            place.copy_from_slice(&bits.to_le_bytes()[..width]);
        }
    }
    Ok(ModuleVariable {
        name: v.name.to_owned(),
        is_extern: v.is_extern,
        is_managed: v.is_managed,
        is_sized: v.size.is_some(),
        align: v.align,
        bytes,
        pointers,
    })
}
