//! Modules and libraries, and the functions and kernels in them.
//!
//! The API has both for the same things, and here they are the same: the handle of a library is that of its module, the handle of a kernel that of its function. Variables are
//! placed when a module is loaded and stay where they are, so that all launches share them.

use std::collections::HashMap;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::sync::Arc;

use ptx_emulator::{Kernel, Module as Parsed};

use crate::c::{Done, Handle, In, Out, Text, api, host_write};
use crate::device::SHARED_BY_DEFAULT;
use crate::fatbin::{self, Refusal};
use crate::memory::pages;
use crate::state::{Driver, with};
use crate::status::{
    FILE_NOT_FOUND, INVALID_HANDLE, INVALID_PTX, INVALID_VALUE, NO_BINARY_FOR_GPU, NOT_FOUND,
    OUT_OF_MEMORY, Status,
};

/// A loaded module.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) parsed: Arc<Parsed>,
    pub(crate) text: Arc<str>,
    /// Where each variable lies.
    pub(crate) variables: Vec<(String, u64)>,
    /// Its functions in the order of the text.
    functions: Vec<Handle>,
}

/// A function of a module.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) module: Handle,
    pub(crate) name: CString,
    /// What `cuFuncSetAttribute` has set.
    set: HashMap<c_int, c_int>,
}

/// Texts that are put together.
#[derive(Debug, Default)]
pub(crate) struct Link {
    texts: Vec<String>,
    /// The result, which the API lends out until the link ends.
    image: Vec<u8>,
}

/// Attributes of functions, by the API's numbers.
const MAX_DYNAMIC_SHARED: c_int = 8;
pub(crate) const NON_PORTABLE_CLUSTER: c_int = 14;

impl Function {
    pub(crate) fn name(&self) -> &str {
        self.name.to_str().unwrap_or_default()
    }

    pub(crate) fn is_set(&self, attribute: c_int) -> bool {
        self.set.get(&attribute).is_some_and(|v| *v != 0)
    }

    /// Most bytes of dynamic shared memory of a launch.
    pub(crate) fn max_dynamic_shared(&self, kernel: &Kernel) -> c_int {
        let least = (SHARED_BY_DEFAULT - kernel.static_shared() as c_int).max(0);
        self.set.get(&MAX_DYNAMIC_SHARED).copied().unwrap_or(least)
    }
}

/// Threads that a block of a kernel may have.
pub(crate) fn max_threads(kernel: &Kernel) -> u32 {
    let given = kernel.required_threads().or(kernel.max_threads());
    given.map_or(1024, |[x, y, z]| x * y * z)
}

/// Registers of a thread, as told and as assumed for how many blocks run at once: the emulator has no compiler that would choose.
pub(crate) fn registers(threads: u32) -> u32 {
    (65_536 / threads.max(1).next_multiple_of(32)).clamp(16, 64)
}

impl Driver {
    /// Makes a module of an image.
    fn load(
        &mut self,
        image: impl FnOnce(u32) -> Result<String, Refusal>,
    ) -> Result<Handle, Refusal> {
        let status = |status| Refusal::new(status, "no context");
        let device = self.current_device().or_else(|e| {
            if self.devices.is_empty() {
                Err(e)
            } else {
                Ok(0)
            }
        });
        let device = *self.device(device.map_err(status)?).map_err(status)?;
        let architecture = device.architecture() as u32;
        let text = image(architecture)?;
        let parsed = Parsed::parse(&text).map_err(|e| {
            let line = text
                .lines()
                .nth(e.line.saturating_sub(1) as usize)
                .unwrap_or_default();
            Refusal::new(
                INVALID_PTX,
                format!(
                    "the emulator can't read the module: line {e}: {}",
                    line.trim()
                ),
            )
        })?;
        if !fatbin::runs(parsed.target(), architecture) {
            let (target, name) = (parsed.target(), device.short);
            let message = format!(
                "the module is for {target}, which {name} (sm_{architecture}) does not run: choose another device by TILEWRIGHT_DEVICE"
            );
            return Err(Refusal::new(NO_BINARY_FOR_GPU, message));
        }
        let places = parsed.place_variables(&mut self.memory, |bytes| pages(bytes).ok());
        let variables = places.map_err(|e| Refusal::new(OUT_OF_MEMORY, e.to_string()))?;
        let handle = self.handle();
        let mut functions = Vec::new();
        for name in parsed.kernels() {
            let function = self.handle();
            let name = CString::new(name).unwrap_or_default();
            self.functions.insert(
                function,
                Function {
                    module: handle,
                    name,
                    set: HashMap::new(),
                },
            );
            functions.push(function);
        }
        let module = Module {
            parsed: Arc::new(parsed),
            text: text.into(),
            variables,
            functions,
        };
        self.modules.insert(handle, module);
        Ok(handle)
    }

    fn unload(&mut self, module: Handle) -> Done {
        let module = self.modules.remove(&module).ok_or(INVALID_HANDLE)?;
        for function in module.functions {
            self.functions.remove(&function);
        }
        for (_, address) in module.variables {
            // The pages of managed ones stay: the program may still hold their address.
            let _ = self.memory.free(address);
        }
        Ok(())
    }

    fn module(&self, handle: Handle) -> Result<&Module, Status> {
        self.modules.get(&handle).ok_or(INVALID_HANDLE)
    }

    pub(crate) fn function(&self, handle: Handle) -> Result<&Function, Status> {
        self.functions.get(&handle).ok_or(INVALID_HANDLE)
    }

    /// A function with its module, whose kernel it is.
    pub(crate) fn code(&self, handle: Handle) -> Result<(&Function, &Module, &Kernel), Status> {
        let function = self.function(handle)?;
        let module = self.module(function.module)?;
        let kernel = module
            .parsed
            .kernel(function.name())
            .ok_or(INVALID_HANDLE)?;
        Ok((function, module, kernel))
    }

    fn named(&self, module: Handle, name: Text) -> Result<Handle, Status> {
        let (module, name) = (self.module(module)?, name.get()?);
        let is = |f: &&Handle| self.function(**f).is_ok_and(|f| f.name() == name);
        module.functions.iter().find(is).copied().ok_or(NOT_FOUND)
    }

    fn global(&self, module: Handle, name: Text) -> Result<(u64, usize), Status> {
        let (module, name) = (self.module(module)?, name.get()?);
        let places = &module.variables;
        let (_, address) = places
            .iter()
            .find(|(known, _)| *known == name)
            .ok_or(NOT_FOUND)?;
        let mut all = module.parsed.variables();
        let bytes = all.find_map(|(known, bytes)| (known == name).then_some(bytes?));
        Ok((*address, bytes.unwrap_or(0) as usize))
    }

    fn function_attribute(&self, function: Handle, attribute: c_int) -> Result<c_int, Status> {
        let (function, module, kernel) = self.code(function)?;
        let cluster = kernel
            .required_cluster()
            .map_or([0; 3], |c| c.map(|n| n as c_int));
        let digits: String = module
            .parsed
            .target()
            .chars()
            .filter(char::is_ascii_digit)
            .collect();
        let version = digits.parse().unwrap_or(0);
        Ok(match attribute {
            0 => max_threads(kernel) as c_int,
            1 => kernel.static_shared() as c_int,
            4 => registers(max_threads(kernel)) as c_int,
            5 | 6 => version,
            MAX_DYNAMIC_SHARED => function.max_dynamic_shared(kernel),
            9 => function.set.get(&9).copied().unwrap_or(-1),
            10 => c_int::from(kernel.required_cluster().is_some()),
            11..=13 => cluster[attribute as usize - 11],
            2 | 3 | 7 | 14 | 15 => function.set.get(&attribute).copied().unwrap_or(0),
            _ => return Err(INVALID_VALUE),
        })
    }

    fn set_function_attribute(&mut self, handle: Handle, attribute: c_int, value: c_int) -> Done {
        let (_, _, kernel) = self.code(handle)?;
        let shared = kernel.static_shared() as c_int;
        let device = self.current_device()?;
        let most = self.device(device)?.shared_of_a_block() - shared;
        match attribute {
            MAX_DYNAMIC_SHARED if !(0..=most).contains(&value) => return Err(INVALID_VALUE),
            8 | 9 | 11..=15 => {}
            _ => return Err(INVALID_VALUE),
        }
        let function = self.functions.get_mut(&handle).ok_or(INVALID_HANDLE)?;
        function.set.insert(attribute, value);
        Ok(())
    }
}

/// The options of a compilation that ask for a log.
struct Logs {
    /// Address and room, of information and of errors.
    places: [(u64, usize); 2],
}

impl Logs {
    fn new(count: usize, options: In<c_int>, values: In<u64>) -> Result<Self, Status> {
        let mut places = [(0, 0); 2];
        for i in 0..count {
            let value = values.at(i)?;
            match options.at(i)? {
                3 => places[0].0 = value,
                4 => places[0].1 = value as u32 as usize,
                5 => places[1].0 = value,
                6 => places[1].1 = value as u32 as usize,
                _ => {}
            }
        }
        let logs = Self { places };
        logs.write(0, "");
        logs.write(1, "");
        Ok(logs)
    }

    fn write(&self, which: usize, text: &str) {
        let (address, room) = self.places[which];
        if address != 0 && room > 0 {
            let mut bytes: Vec<u8> = text.bytes().take(room - 1).collect();
            bytes.push(0);
            host_write(address, &bytes);
        }
    }

    /// The status alone; the reason is in the log of errors.
    fn status(&self, refusal: Refusal) -> Status {
        self.write(1, &refusal.message);
        refusal.into()
    }
}

fn load_data(out: Out<Handle>, image: In<u8>, logs: &Logs) -> Done {
    with(|d| {
        let loaded = d.load(|architecture| fatbin::text_of(image, architecture));
        out.set(loaded.map_err(|refusal| logs.status(refusal))?)
    })
}

fn no_logs() -> Logs {
    Logs {
        places: [(0, 0); 2],
    }
}

/// The content of a file.
fn file(path: Text) -> Result<Vec<u8>, Status> {
    use std::os::unix::ffi::OsStrExt as _;
    let path = std::ffi::OsStr::from_bytes(path.bytes()?);
    std::fs::read(path).map_err(|_| FILE_NOT_FOUND)
}

fn load_file(out: Out<Handle>, path: Text) -> Done {
    let content = file(path)?;
    with(|d| out.set(d.load(|architecture| fatbin::text_in(&content, architecture))?))
}

/// One text of several: the header of the first counts.
fn joined(texts: &[String]) -> String {
    let mut all = String::new();
    for (i, text) in texts.iter().enumerate() {
        let is_header = |line: &str| {
            let line = line.trim_start();
            [".version", ".target", ".address_size"]
                .iter()
                .any(|d| line.starts_with(d))
        };
        for line in text.lines().filter(|line| i == 0 || !is_header(line)) {
            all.push_str(line);
            all.push('\n');
        }
    }
    all
}

fn add_to_link(link: Handle, image: &[u8]) -> Done {
    with(|d| {
        let architecture = d.device(0)?.architecture() as u32;
        let text = fatbin::text_in(image, architecture)?;
        let link = d.links.get_mut(&link).ok_or(INVALID_HANDLE)?;
        link.texts.push(text);
        Ok(())
    })
}

api! {
    fn cuModuleLoad(out: Out<Handle>, path: Text) {
        load_file(out, path)
    }

    fn cuModuleLoadData(out: Out<Handle>, image: In<u8>) {
        load_data(out, image, &no_logs())
    }

    fn cuModuleLoadDataEx(out: Out<Handle>, image: In<u8>, count: c_uint, options: In<c_int>, values: In<u64>) {
        load_data(out, image, &Logs::new(count as usize, options, values)?)
    }

    fn cuModuleLoadFatBinary(out: Out<Handle>, image: In<u8>) {
        load_data(out, image, &no_logs())
    }

    fn cuModuleUnload(module: Handle) {
        with(|d| d.unload(module))
    }

    fn cuModuleGetLoadingMode(mode: Out<c_int>) {
        // Eager.
        mode.set(1)
    }

    fn cuModuleGetFunction(out: Out<Handle>, module: Handle, name: Text) {
        with(|d| out.set(d.named(module, name)?))
    }

    fn cuModuleGetFunctionCount(count: Out<c_uint>, module: Handle) {
        with(|d| count.set(d.module(module)?.functions.len() as c_uint))
    }

    fn cuModuleEnumerateFunctions(out: Out<Handle>, count: c_uint, module: Handle) {
        with(|d| {
            let all = &d.module(module)?.functions;
            out.set_all(all.iter().take(count as usize).copied());
            Ok(())
        })
    }

    fn cuModuleGetGlobal_v2(address: Out<u64>, bytes: Out<usize>, module: Handle, name: Text) {
        with(|d| {
            let (place, size) = d.global(module, name)?;
            address.set_if_wanted(place);
            bytes.set_if_wanted(size);
            Ok(())
        })
    }

    fn cuLibraryLoadData(out: Out<Handle>, image: In<u8>, options: In<c_int>, values: In<u64>, count: c_uint, _library_options: In<c_int>, _library_values: In<u64>, _library_count: c_uint) {
        load_data(out, image, &Logs::new(count as usize, options, values)?)
    }

    fn cuLibraryLoadFromFile(out: Out<Handle>, path: Text, _options: In<c_int>, _values: In<u64>, _count: c_uint, _library_options: In<c_int>, _library_values: In<u64>, _library_count: c_uint) {
        load_file(out, path)
    }

    fn cuLibraryUnload(library: Handle) {
        with(|d| d.unload(library))
    }

    fn cuLibraryGetKernel(out: Out<Handle>, library: Handle, name: Text) {
        with(|d| out.set(d.named(library, name)?))
    }

    fn cuLibraryGetModule(out: Out<Handle>, library: Handle) {
        with(|d| d.module(library).and_then(|_| out.set(library)))
    }

    fn cuLibraryGetGlobal(address: Out<u64>, bytes: Out<usize>, library: Handle, name: Text) as cuLibraryGetManaged {
        with(|d| {
            let (place, size) = d.global(library, name)?;
            address.set_if_wanted(place);
            bytes.set_if_wanted(size);
            Ok(())
        })
    }

    fn cuLibraryGetKernelCount(count: Out<c_uint>, library: Handle) {
        with(|d| count.set(d.module(library)?.functions.len() as c_uint))
    }

    fn cuLibraryEnumerateKernels(out: Out<Handle>, count: c_uint, library: Handle) {
        with(|d| {
            let all = &d.module(library)?.functions;
            out.set_all(all.iter().take(count as usize).copied());
            Ok(())
        })
    }

    fn cuKernelGetFunction(out: Out<Handle>, kernel: Handle) {
        with(|d| d.function(kernel).and_then(|_| out.set(kernel)))
    }

    fn cuKernelGetLibrary(out: Out<Handle>, kernel: Handle) {
        with(|d| out.set(d.function(kernel)?.module))
    }

    fn cuFuncGetModule(out: Out<Handle>, function: Handle) {
        with(|d| out.set(d.function(function)?.module))
    }

    fn cuFuncGetName(out: Out<*const c_char>, function: Handle) as cuKernelGetName {
        with(|d| out.set(d.function(function)?.name.as_ptr()))
    }

    fn cuFuncGetParamInfo(function: Handle, index: usize, offset: Out<usize>, size: Out<usize>) as cuKernelGetParamInfo {
        with(|d| {
            let (_, _, kernel) = d.code(function)?;
            let parameter = kernel.params().get(index).ok_or(INVALID_VALUE)?;
            offset.set(parameter.offset as usize)?;
            size.set_if_wanted(parameter.size as usize);
            Ok(())
        })
    }

    fn cuFuncGetAttribute(value: Out<c_int>, attribute: c_int, function: Handle) {
        with(|d| value.set(d.function_attribute(function, attribute)?))
    }

    fn cuFuncSetAttribute(function: Handle, attribute: c_int, value: c_int) {
        with(|d| d.set_function_attribute(function, attribute, value))
    }

    fn cuKernelGetAttribute(value: Out<c_int>, attribute: c_int, kernel: Handle, _device: c_int) {
        with(|d| value.set(d.function_attribute(kernel, attribute)?))
    }

    fn cuKernelSetAttribute(attribute: c_int, value: c_int, kernel: Handle, _device: c_int) {
        with(|d| d.set_function_attribute(kernel, attribute, value))
    }

    fn cuFuncSetCacheConfig(function: Handle, _config: c_int) as cuFuncSetSharedMemConfig {
        with(|d| d.function(function).map(|_| ()))
    }

    fn cuKernelSetCacheConfig(kernel: Handle, _config: c_int, _device: c_int) {
        with(|d| d.function(kernel).map(|_| ()))
    }

    fn cuFuncLoad(function: Handle) {
        with(|d| d.function(function).map(|_| ()))
    }

    fn cuFuncIsLoaded(state: Out<c_int>, function: Handle) {
        with(|d| d.function(function).and_then(|_| state.set(1)))
    }

    fn cuLinkCreate_v2(count: c_uint, options: In<c_int>, values: In<u64>, out: Out<Handle>) as cuLinkCreate {
        Logs::new(count as usize, options, values)?;
        with(|d| {
            let handle = d.handle();
            d.links.insert(handle, Link::default());
            out.set(handle)
        })
    }

    fn cuLinkAddData_v2(link: Handle, _kind: c_int, data: In<u8>, size: usize, _name: Text, _count: c_uint, _options: In<c_int>, _values: In<u64>) as cuLinkAddData {
        add_to_link(link, &data.list(size)?)
    }

    fn cuLinkAddFile_v2(link: Handle, _kind: c_int, path: Text, _count: c_uint, _options: In<c_int>, _values: In<u64>) as cuLinkAddFile {
        add_to_link(link, &file(path)?)
    }

    fn cuLinkComplete(link: Handle, image: Out<*const c_void>, size: Out<usize>) {
        with(|d| {
            let link = d.links.get_mut(&link).ok_or(INVALID_HANDLE)?;
            link.image = joined(&link.texts).into_bytes();
            link.image.push(0);
            size.set_if_wanted(link.image.len());
            image.set(link.image.as_ptr().cast())
        })
    }

    fn cuLinkDestroy(link: Handle) {
        with(|d| d.links.remove(&link).map(|_| ()).ok_or(INVALID_HANDLE))
    }
}
