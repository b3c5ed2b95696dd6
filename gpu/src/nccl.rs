//! NCCL's collectives, found at run time: the yardstick of what [`crate::Stream::copy`] and flags do, and the way to other processes and hosts.
//!
//! One process with several GPUs opens one communicator for all of them ([`Nccl::all`]). Several processes, of one host or of many, make an [`Id`] in one
//! of them, hand its bytes to the others, and each opens its rank ([`Nccl::rank`]). Calls of one collective belong together ([`Nccl::group`]): NCCL
//! begins when all ranks of the process have said what they want.
//!
//! NCCL reads its own environment: where multicast over `NVLink` must stay off, set `NCCL_NVLS_ENABLE=0`.

use std::ffi::c_void;

use crate::cublas::Scalar;
use crate::device::Gpu;
use crate::error::GpuError;
use crate::library::api;
use crate::timing::Stream;

type Communicator = *mut c_void;

/// `ncclUniqueId`: what the ranks of one communicator agree on.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Id {
    bytes: [u8; 128],
}

impl std::fmt::Debug for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Id({} bytes)", self.bytes.len())
    }
}

impl Id {
    /// A new one, to be handed to all ranks.
    ///
    /// # Errors
    ///
    /// [`GpuError::NoLibrary`] without NCCL, or [`GpuError::Nccl`].
    pub fn new() -> Result<Self, GpuError> {
        let mut id = Self { bytes: [0; 128] };
        // SAFETY: NCCL writes 128 bytes.
        check("ncclGetUniqueId", unsafe {
            (Api::get()?.unique_id)(&raw mut id)
        })?;
        Ok(id)
    }

    /// Its bytes, as another process takes them.
    pub fn to_bytes(&self) -> [u8; 128] {
        self.bytes
    }

    /// The identity with these bytes.
    pub fn from_bytes(bytes: [u8; 128]) -> Self {
        Self { bytes }
    }
}

api! {
    /// What is used of `nccl.h`. Enumerations are passed as the C `int` that they are.
    Api from "nccl" {
        unique_id: "ncclGetUniqueId" (*mut Id);
        init_all: "ncclCommInitAll" (*mut Communicator, i32, *const i32);
        init_rank: "ncclCommInitRank" (*mut Communicator, i32, Id, i32);
        destroy: "ncclCommDestroy" (Communicator);
        group_start: "ncclGroupStart" ();
        group_end: "ncclGroupEnd" ();
        all_gather: "ncclAllGather" (*const c_void, *mut c_void, usize, i32, Communicator, *mut c_void);
        reduce_scatter: "ncclReduceScatter" (*const c_void, *mut c_void, usize, i32, i32, Communicator, *mut c_void);
        send: "ncclSend" (*const c_void, usize, i32, i32, Communicator, *mut c_void);
        receive: "ncclRecv" (*mut c_void, usize, i32, i32, Communicator, *mut c_void);
    }
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

fn check(call: &'static str, status: i32) -> Result<(), GpuError> {
    if status == 0 {
        Ok(())
    } else {
        Err(GpuError::Nccl { call, status })
    }
}

/// `ncclUint8`: bytes that nobody adds.
const BYTES: i32 = 1;

/// The `ncclDataType_t` of elements that NCCL adds.
fn number(scalar: Scalar) -> Result<i32, GpuError> {
    match scalar {
        Scalar::S32 => Ok(2),
        Scalar::F16 => Ok(6),
        Scalar::F32 => Ok(7),
        Scalar::F64 => Ok(8),
        Scalar::Bf16 => Ok(9),
        Scalar::S8 | Scalar::E4m3 | Scalar::E5m2 => Err(GpuError::invalid(format!(
            "NCCL adds no elements of {scalar:?}: give wider ones"
        ))),
    }
}

/// `ncclSum`.
const SUM: i32 = 0;

/// Communicators of the ranks that this process has.
#[derive(Debug)]
pub struct Nccl {
    api: &'static Api,
    ranks: Vec<Communicator>,
}

// SAFETY: NCCL's communicators may be used from any thread.
unsafe impl Send for Nccl {}

// SAFETY: a communicator must be used by one thread at a time, which callers promise (`Nccl::all_gather`); groups are a thread's own.
unsafe impl Sync for Nccl {}

/// A group of calls that has begun: this thread's, ended also where the calls panic.
struct Group(&'static Api);

impl Group {
    fn start(api: &'static Api) -> Result<Self, GpuError> {
        // SAFETY: the group is ended by `end` or by `drop`.
        check("ncclGroupStart", unsafe { (api.group_start)() })?;
        Ok(Self(api))
    }

    fn end(self) -> Result<(), GpuError> {
        let api = self.0;
        std::mem::forget(self);
        // SAFETY: it was started.
        check("ncclGroupEnd", unsafe { (api.group_end)() })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // SAFETY: it was started. A panic is under way, which says more than a status.
        let _ = unsafe { (self.0.group_end)() };
    }
}

impl Nccl {
    /// One rank for each of these GPUs, all in this process.
    ///
    /// # Errors
    ///
    /// [`GpuError::NoLibrary`] without NCCL, or [`GpuError::Nccl`].
    pub fn all(gpus: &[Gpu]) -> Result<Self, GpuError> {
        let api = Api::get()?;
        let ordinals: Vec<i32> = gpus.iter().map(|gpu| gpu.info().ordinal as i32).collect();
        let mut ranks = vec![std::ptr::null_mut(); gpus.len()];
        // SAFETY: as many places and numbers as are announced.
        check("ncclCommInitAll", unsafe {
            (api.init_all)(ranks.as_mut_ptr(), gpus.len() as i32, ordinals.as_ptr())
        })?;
        Ok(Self { api, ranks })
    }

    /// The rank `rank` of `ranks`, on `gpu`; waits until all others have called it, in this process (another thread) or in others.
    ///
    /// # Errors
    ///
    /// [`GpuError::Invalid`] for a rank that does not exist, [`GpuError::NoLibrary`] without NCCL, or [`GpuError::Nccl`].
    pub fn rank(gpu: &Gpu, id: &Id, rank: usize, ranks: usize) -> Result<Self, GpuError> {
        if rank >= ranks {
            return Err(GpuError::invalid(format!(
                "there is no rank {rank} of {ranks}; ranks count from 0"
            )));
        }
        let api = Api::get()?;
        gpu.context.bind()?;
        let mut communicator = std::ptr::null_mut();
        // SAFETY: the GPU's context is current; the handle goes to a local variable.
        check("ncclCommInitRank", unsafe {
            (api.init_rank)(&raw mut communicator, ranks as i32, *id, rank as i32)
        })?;
        Ok(Self {
            api,
            ranks: vec![communicator],
        })
    }

    /// Runs `calls`, which say what every rank wants, as one collective.
    ///
    /// # Errors
    ///
    /// What `calls` returns, or [`GpuError::Nccl`].
    pub fn group(&self, calls: impl FnOnce(&Self) -> Result<(), GpuError>) -> Result<(), GpuError> {
        let group = Group::start(self.api)?;
        calls(self).and(group.end())
    }

    fn communicator(&self, rank: usize) -> Result<Communicator, GpuError> {
        self.ranks.get(rank).copied().ok_or_else(|| {
            GpuError::invalid(format!(
                "this process has {} ranks, and there is none of number {rank}",
                self.ranks.len()
            ))
        })
    }

    /// Every rank's `bytes` bytes at `from` go to all ranks, one behind the other, at `to`.
    ///
    /// # Safety
    ///
    /// `from` must have `bytes` bytes and `to` `bytes` times the number of ranks, in allocations of the rank's GPU that live until the
    /// collective has run on `stream`. No other thread uses the rank at the same time.
    ///
    /// # Errors
    ///
    /// [`GpuError::Nccl`].
    pub unsafe fn all_gather(
        &self,
        rank: usize,
        (from, to): (u64, u64),
        bytes: usize,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        let communicator = self.communicator(rank)?;
        // SAFETY: the caller's promise.
        check("ncclAllGather", unsafe {
            (self.api.all_gather)(
                pointer(from).cast_const(),
                pointer(to),
                bytes,
                BYTES,
                communicator,
                stream.raw().cast(),
            )
        })
    }

    /// Adds the ranks' `count` times the number of ranks elements at `from`; each rank gets its `count` of the sums at `to`.
    ///
    /// # Safety
    ///
    /// As [`Nccl::all_gather`], with `from` and `to` exchanged, and elements of `scalar` for bytes.
    ///
    /// # Errors
    ///
    /// [`GpuError::Nccl`], and [`GpuError::Invalid`] for 8-bit elements, whose sums NCCL does not have or wraps.
    pub unsafe fn reduce_scatter(
        &self,
        rank: usize,
        (from, to): (u64, u64),
        count: usize,
        scalar: Scalar,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        let (ty, communicator) = (number(scalar)?, self.communicator(rank)?);
        // SAFETY: the caller's promise.
        check("ncclReduceScatter", unsafe {
            (self.api.reduce_scatter)(
                pointer(from).cast_const(),
                pointer(to),
                count,
                ty,
                SUM,
                communicator,
                stream.raw().cast(),
            )
        })
    }

    /// Sends `bytes` bytes at `from` to the rank `peer`, which receives them.
    ///
    /// # Safety
    ///
    /// As [`Nccl::all_gather`].
    ///
    /// # Errors
    ///
    /// [`GpuError::Nccl`].
    pub unsafe fn send(
        &self,
        rank: usize,
        from: u64,
        bytes: usize,
        peer: usize,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        let communicator = self.communicator(rank)?;
        // SAFETY: the caller's promise.
        check("ncclSend", unsafe {
            (self.api.send)(
                pointer(from).cast_const(),
                bytes,
                BYTES,
                peer as i32,
                communicator,
                stream.raw().cast(),
            )
        })
    }

    /// Receives `bytes` bytes at `to` from the rank `peer`.
    ///
    /// # Safety
    ///
    /// As [`Nccl::all_gather`].
    ///
    /// # Errors
    ///
    /// [`GpuError::Nccl`].
    pub unsafe fn receive(
        &self,
        rank: usize,
        to: u64,
        bytes: usize,
        peer: usize,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        let communicator = self.communicator(rank)?;
        // SAFETY: the caller's promise.
        check("ncclRecv", unsafe {
            (self.api.receive)(
                pointer(to),
                bytes,
                BYTES,
                peer as i32,
                communicator,
                stream.raw().cast(),
            )
        })
    }
}

fn pointer(address: u64) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

impl Drop for Nccl {
    fn drop(&mut self) {
        for &communicator in &self.ranks {
            // SAFETY: created once. An error has nobody left to tell.
            let _ = unsafe { (self.api.destroy)(communicator) };
        }
    }
}
