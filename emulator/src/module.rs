//! The public view of parsed PTX: [`Module`], [`Kernel`], [`Param`].

use crate::ast::{Init, Space};
use crate::decode;
use crate::error::ParseError;
use crate::ir::Program;
use crate::parser;
use crate::types::ScalarType;

/// A parsed and decoded module. See [`Module::parse`].
#[derive(Debug, Clone)]
pub struct Module {
    version: String,
    target: String,
    kernels: Vec<Kernel>,
    pub(crate) variables: Vec<ModuleVariable>,
}

/// A `.global` or `.const` variable of a module, with its initial bytes.
#[derive(Debug, Clone)]
pub(crate) struct ModuleVariable {
    pub(crate) align: u32,
    pub(crate) bytes: Vec<u8>,
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
    /// # Errors
    ///
    /// [`ParseError`] with line and column: syntax, undeclared names, operands of the wrong size, and every instruction or
    /// form that the emulator does not know, by name.
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
        let mut variables = Vec::new();
        for v in ast
            .variables
            .iter()
            .filter(|v| matches!(v.space, Space::Global | Space::Const))
        {
            let size = v.size.unwrap_or(0);
            let mut bytes = vec![0u8; size as usize];
            let width = v.ty.bytes() as usize;
            for (chunk, init) in bytes.chunks_mut(width.max(1)).zip(&v.init) {
                let bits = match (*init, v.ty) {
                    (Init::Int(i), ScalarType::F32) => u64::from((i as f32).to_bits()),
                    (Init::Int(i), ScalarType::F64) => (i as f64).to_bits(),
                    (Init::Int(i), _) => i as u64,
                    (Init::Float(x), ScalarType::F64 | ScalarType::B64) => x.to_bits(),
                    (Init::Float(x), _) => u64::from((x as f32).to_bits()),
                };
                let source = bits.to_le_bytes();
                let n = chunk.len().min(8);
                chunk[..n].copy_from_slice(&source[..n]);
            }
            variables.push(ModuleVariable {
                align: v.align,
                bytes,
            });
        }
        let kernels = ast
            .kernels
            .iter()
            .map(|k| decode::kernel(&ast, k))
            .collect::<Result<Vec<_>, _>>()?;
        for (i, k) in ast.kernels.iter().enumerate() {
            if ast.kernels[..i].iter().any(|other| other.name == k.name) {
                return Err(k
                    .span
                    .error(crate::error::ParseErrorKind::Redeclared(k.name.to_owned())));
            }
        }
        Ok(Self {
            version: ast.version.clone(),
            target: ast.target.clone(),
            kernels,
            variables,
        })
    }

    /// The `.version`, as written.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The first `.target`, such as `sm_80`.
    pub fn target(&self) -> &str {
        &self.target
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

    /// `.maxntid`, if given.
    pub fn max_threads(&self) -> Option<[u32; 3]> {
        self.max_threads
    }

    /// Instructions in the text of the kernel.
    pub fn instructions(&self) -> usize {
        self.program.insts.len()
    }
}
