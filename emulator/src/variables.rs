//! The `.global` and `.const` variables of a module in memory: where they lie, and their initial bytes.

use std::sync::atomic::AtomicU32;

use crate::error::{MemoryError, RunError};
use crate::launch::Launch;
use crate::memory::GlobalMemory;
use crate::module::Module;

/// Gives variables their initial bytes, but for those that are kept.
pub(crate) fn initialise(
    module: &Module,
    places: &[u64],
    kept: &[bool],
    memory: &mut GlobalMemory,
) -> Result<(), MemoryError> {
    let all = module.variables.iter().zip(places).zip(kept);
    for ((v, address), _) in all.filter(|(_, kept)| !**kept) {
        memory.write(*address, &v.bytes)?;
        for p in &v.pointers {
            let to = places.get(p.variable as usize).copied().unwrap_or(0);
            let value = to.wrapping_add(p.offset as u64) >> p.shift;
            let bytes = &value.to_le_bytes()[..usize::from(p.bytes)];
            memory.write(address + u64::from(p.at), bytes)?;
        }
    }
    Ok(())
}

impl Module {
    /// Places the variables of the module in memory, with their initial bytes, as the driver does when it loads a module: names and addresses for
    /// [`Launch::variables`], so that all launches share them. `managed` gives the words of a variable of so many bytes that the host reaches as well
    /// (`.attribute(.managed)`, see [`GlobalMemory::map`]); without them it is one like the others.
    ///
    /// ```
    /// use ptx_emulator::{GlobalMemory, Module};
    /// let text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .global .u32 count = 7;\n.visible .entry k() { ret; }";
    /// let (module, mut memory) = (Module::parse(text)?, GlobalMemory::new());
    /// let places = module.place_variables(&mut memory, |_| None)?;
    /// assert_eq!(places[0].0, "count");
    /// assert_eq!(memory.read(places[0].1, 4)?, 7u32.to_le_bytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`MemoryError`] if there is no room.
    pub fn place_variables(
        &self,
        memory: &mut GlobalMemory,
        mut managed: impl FnMut(u64) -> Option<&'static [AtomicU32]>,
    ) -> Result<Vec<(String, u64)>, MemoryError> {
        let mut places = Vec::new();
        for v in &self.variables {
            let (bytes, align) = (v.bytes.len() as u64, 256.max(u64::from(v.align)));
            let words = v.is_managed.then(|| managed(bytes)).flatten();
            places.push(match words {
                Some(words) => memory.map(words)?,
                None => memory.alloc(bytes, align)?,
            });
        }
        initialise(self, &places, &vec![false; places.len()], memory)?;
        let names = self.variables.iter().map(|v| v.name.clone());
        let mut named: Vec<(String, u64)> = Vec::new();
        // A definition counts before its `.extern` declaration.
        for is_extern in [false, true] {
            let all = self.variables.iter().zip(names.clone().zip(places.clone()));
            for (_, (name, place)) in all.filter(|(v, _)| v.is_extern == is_extern) {
                if named.iter().all(|(known, _)| *known != name) {
                    named.push((name, place));
                }
            }
        }
        Ok(named)
    }
}

/// Where the caller wants each variable of the module; nowhere for most.
pub(crate) fn bound_variables(
    module: &Module,
    launch: &Launch,
    memory: &GlobalMemory,
) -> Result<Vec<Option<u64>>, RunError> {
    let mut bound = vec![None; module.variables.len()];
    for (name, address) in &launch.variables {
        // A definition counts before its `.extern` declaration.
        let of = |is_extern: bool| {
            let mut all = module.variables.iter();
            all.position(|v| v.name == *name && v.is_extern == is_extern)
        };
        let Some(index) = of(false).or_else(|| of(true)) else {
            let all: Vec<_> = module.variables().map(|(name, _)| name).collect();
            return Err(RunError::Variable(format!(
                "the module has no .global or .const variable `{name}`; it has: {}",
                all.join(", ")
            )));
        };
        let v = &module.variables[index];
        memory.read(*address, v.bytes.len())?;
        if !address.is_multiple_of(u64::from(v.align.max(1))) {
            return Err(RunError::Variable(format!(
                "the variable `{name}` is aligned to {} bytes, and its address {address:#x} is not",
                v.align
            )));
        }
        if bound[index].replace(*address).is_some() {
            return Err(RunError::Variable(format!(
                "the variable `{name}` has two addresses"
            )));
        }
    }
    Ok(bound)
}
