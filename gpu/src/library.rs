//! Finding cuBLAS and NCCL, which may lie in places the dynamic loader does not search.
//!
//! A CUDA toolkit puts it in `/usr/local/cuda*/lib64`, a Python installation in `site-packages/nvidia/cu13/lib` (CUDA 13)
//! or `site-packages/nvidia/cublas/lib` (CUDA 12), NCCL in `site-packages/nvidia/nccl/lib`, and a user anywhere, which
//! `CUBLAS_PATH` and `NCCL_PATH` (a file or a folder) or `LD_LIBRARY_PATH` say. cuBLAS must not be newer than the driver; NCCL has
//! version 2 for every driver. A library once opened stays open: cuBLAS does not survive being unloaded.

use std::env;
use std::path::{Path, PathBuf};

use libloading::Library;

use crate::device::driver_version;
use crate::error::GpuError;

/// An open library and where it was found.
pub(crate) struct Opened {
    pub(crate) library: &'static Library,
    pub(crate) path: String,
}

/// Opens `library`, which is `cublas`, `cublasLt` or `nccl`.
pub(crate) fn open(library: &'static str) -> Result<Opened, GpuError> {
    let newest = driver_version()?.0;
    let mut tried = Vec::new();
    for candidate in candidates(library, newest) {
        preload_sibling(&candidate, library);
        // SAFETY: opening a library runs its initialisers; the user's own search paths decide which library that is.
        match unsafe { Library::new(&candidate) } {
            Ok(opened) => {
                let library: &'static Library = Box::leak(Box::new(opened));
                return Ok(Opened {
                    library,
                    path: candidate.display().to_string(),
                });
            }
            // A file that is there and does not open has a reason worth telling, another does not.
            Err(error) if candidate.is_file() => tried.push(error.to_string()),
            Err(_) => tried.push(candidate.display().to_string()),
        }
    }
    Err(GpuError::NoLibrary { library, tried })
}

/// cuBLAS needs cublasLt of its own folder; the loader takes it if it is open already and may not find it otherwise.
fn preload_sibling(candidate: &Path, library: &str) {
    let (Some(folder), Some(name)) = (candidate.parent(), candidate.file_name()) else {
        return;
    };
    let name = name.to_string_lossy();
    if library != "cublas" || !candidate.is_file() || !name.starts_with("libcublas.so") {
        return;
    }
    let sibling = folder.join(name.replace("libcublas.so", "libcublasLt.so"));
    if !sibling.is_file() {
        return;
    }
    // SAFETY: as in `open`.
    if let Ok(sibling) = unsafe { Library::new(&sibling) } {
        // It stays open for the sake of cuBLAS. A failure shows when cuBLAS itself is opened.
        std::mem::forget(sibling);
    }
}

/// Every name worth trying, best first. Whole folders are named only if they exist.
fn candidates(library: &str, newest: u32) -> Vec<PathBuf> {
    let (versions, variable) = match library {
        "nccl" => (2..=2, "NCCL_PATH"),
        _ => (11..=newest.clamp(11, 99), "CUBLAS_PATH"),
    };
    let mut names: Vec<String> = versions
        .rev()
        .map(|major| format!("lib{library}.so.{major}"))
        .collect();
    let versioned = names.clone();
    names.push(format!("lib{library}.so"));
    let within = |folder: PathBuf| {
        names
            .iter()
            .map(move |name| folder.join(name))
            .collect::<Vec<_>>()
    };

    let mut found = Vec::new();
    if let Some(path) = env::var_os(variable).map(PathBuf::from) {
        if path.is_dir() {
            found.extend(within(path));
        } else if path.file_name().is_some_and(|name| {
            name.to_string_lossy()
                .starts_with(&format!("lib{library}.so"))
        }) {
            found.push(path);
        } else {
            // The file of the other library: this one lies beside it.
            found.extend(
                path.parent()
                    .map(|folder| within(folder.to_path_buf()))
                    .unwrap_or_default(),
            );
        }
    }
    let folders = [split("LD_LIBRARY_PATH"), toolkits(), python_packages()].concat();
    let present = |folders: Vec<PathBuf>| {
        folders
            .into_iter()
            .flat_map(within)
            .filter(|path| path.is_file())
    };
    found.extend(present(folders));
    found.extend(versioned.into_iter().map(PathBuf::from));
    found
}

fn split(variable: &str) -> Vec<PathBuf> {
    env::var_os(variable)
        .map(|value| env::split_paths(&value).collect())
        .unwrap_or_default()
}

/// The library folders of CUDA toolkits.
fn toolkits() -> Vec<PathBuf> {
    let named = ["CUDA_PATH", "CUDA_HOME"]
        .into_iter()
        .filter_map(|name| env::var_os(name).map(PathBuf::from));
    let roots = named.chain(entries(Path::new("/usr/local"), "cuda").into_iter().rev());
    let below = |root: PathBuf| {
        [
            "lib64",
            "lib",
            "targets/x86_64-linux/lib",
            "targets/sbsa-linux/lib",
        ]
        .map(|place| root.join(place))
    };
    roots
        .flat_map(below)
        .filter(|folder| folder.is_dir())
        .collect()
}

/// The library folders of NVIDIA's Python packages.
fn python_packages() -> Vec<PathBuf> {
    let mut prefixes: Vec<PathBuf> = ["VIRTUAL_ENV", "CONDA_PREFIX"]
        .into_iter()
        .filter_map(|name| env::var_os(name).map(PathBuf::from))
        .collect();
    for folder in split("PATH") {
        let python = folder.join("python3");
        if python.is_file() {
            prefixes.extend(folder.parent().map(Path::to_path_buf));
            let real = python.canonicalize().unwrap_or(python);
            prefixes.extend(real.parent().and_then(Path::parent).map(Path::to_path_buf));
        }
    }
    prefixes.extend(env::var_os("HOME").map(|home| Path::new(&home).join(".local")));
    prefixes.push(PathBuf::from("/usr/local"));
    let mut sites = split("PYTHONPATH");
    for prefix in prefixes {
        for python in entries(&prefix.join("lib"), "python3") {
            sites.extend(["site-packages", "dist-packages"].map(|name| python.join(name)));
        }
    }
    let below = |site: PathBuf| {
        ["nvidia/cu13/lib", "nvidia/cublas/lib", "nvidia/nccl/lib"].map(|place| site.join(place))
    };
    sites
        .into_iter()
        .flat_map(below)
        .filter(|folder| folder.is_dir())
        .collect()
}

/// The entries of `folder` whose names start with `start`, sorted.
fn entries(folder: &Path, start: &str) -> Vec<PathBuf> {
    let Ok(listing) = folder.read_dir() else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = listing
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(start))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

/// Declares a struct of a library's functions, each with the type of its C declaration, and how to load it.
macro_rules! api {
    ($(#[$doc:meta])* $name:ident from $library:literal { $($field:ident: $symbol:literal ($($argument:ty),* $(,)?);)* }) => {
        $(#[$doc])*
        struct $name {
            $($field: unsafe extern "C" fn($($argument),*) -> i32,)*
            path: String,
        }

        impl $name {
            /// The functions, loaded once in a process.
            fn get() -> Result<&'static Self, $crate::error::GpuError> {
                static LOADED: std::sync::OnceLock<Result<$name, $crate::error::GpuError>> = std::sync::OnceLock::new();
                LOADED.get_or_init(Self::load).as_ref().map_err(Clone::clone)
            }

            fn load() -> Result<Self, $crate::error::GpuError> {
                let opened = $crate::library::open($library)?;
                Ok(Self {
                    $($field: {
                        // SAFETY: the type is that of the function's declaration in the header.
                        let function = unsafe {
                            opened.library.get::<unsafe extern "C" fn($($argument),*) -> i32>($symbol.as_bytes())
                        };
                        *function.map_err(|_| $crate::error::GpuError::NoLibrary {
                            library: $library,
                            tried: vec![format!("{}, which lacks {}", opened.path, $symbol)],
                        })?
                    },)*
                    path: opened.path,
                })
            }
        }
    };
}
pub(crate) use api;
