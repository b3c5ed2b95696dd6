//! Graphs: nodes of work, each after others. They are made here by hand, and in [`crate::capture`] by capture of streams.
//!
//! An executable graph is its nodes' work in an order that the edges permit; a launch of it is one piece of work of a stream. Example: a captured copy, kernel and copy
//! are three nodes, each after the one before.

use std::collections::HashSet;
use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::c::{Done, Handle, In, Out, api};
use crate::copy::{Copy, Copy3D, Set};
use crate::launch::{Arguments, Launch, Shape};
use crate::state::{Driver, with};
use crate::status::{
    GRAPH_EXEC_UPDATE_FAILURE, INVALID_HANDLE, INVALID_VALUE, NOT_SUPPORTED, Status,
};
use crate::stream::{HostCall, Work, submit};

/// A graph: its nodes in the order in which they were made.
#[derive(Debug, Default, Clone)]
pub(crate) struct Graph {
    nodes: Vec<Handle>,
}

/// A node.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    work: Work,
    pub(crate) after: Vec<Handle>,
    /// The graph that it is a copy of, of a node that holds one.
    child: Handle,
}

/// An executable graph: its nodes' work in order, each with the node of the graph that it was made from.
#[derive(Debug, Clone)]
pub(crate) struct Executable {
    steps: Vec<(Handle, Work)>,
}

/// `CUDA_KERNEL_NODE_PARAMS`, first version; the second has a kernel and a context behind it.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct KernelNode {
    function: Handle,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    each: In<In<u8>>,
    extra: In<u64>,
}

/// The second version.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct KernelNode2 {
    first: KernelNode,
    kernel: Handle,
    context: Handle,
}

/// `CUDA_MEMSET_NODE_PARAMS`
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct SetNode {
    address: u64,
    pitch: usize,
    value: c_uint,
    element: c_uint,
    width: usize,
    height: usize,
}

/// `CUDA_HOST_NODE_PARAMS`
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct HostNode {
    call: Option<extern "C" fn(*mut c_void)>,
    data: *mut c_void,
}

impl From<SetNode> for Work {
    fn from(set: SetNode) -> Self {
        let SetNode {
            address,
            pitch,
            value,
            element,
            width,
            height,
        } = set;
        Self::Set(Set {
            address,
            pitch: pitch as u64,
            value,
            element,
            width: width as u64,
            height: height as u64,
        })
    }
}

impl TryFrom<HostNode> for Work {
    type Error = Status;

    fn try_from(node: HostNode) -> Result<Self, Status> {
        let call = HostCall::Function(node.call.ok_or(INVALID_VALUE)?);
        Ok(Self::Host(call, node.data.expose_provenance()))
    }
}

impl Work {
    /// The API's number of the kind of node.
    fn kind(&self) -> c_int {
        match self {
            Self::Kernel(_) => 0,
            Self::Copy(_) => 1,
            Self::Set(_) => 2,
            Self::Host(..) => 3,
            Self::Graph(_) => 4,
            Self::Nothing => 5,
            Self::Wait(..) => 6,
            Self::Record(..) => 7,
            Self::Free(_) => 11,
            Self::Write(_) | Self::WaitValue(..) => 12,
        }
    }
}

impl Driver {
    fn graph(&mut self, graph: Handle) -> Result<&mut Graph, Status> {
        self.graphs.get_mut(&graph).ok_or(INVALID_HANDLE)
    }

    pub(crate) fn node(&mut self, node: Handle) -> Result<&mut Node, Status> {
        self.nodes.get_mut(&node).ok_or(INVALID_HANDLE)
    }

    pub(crate) fn add_node(
        &mut self,
        graph: Handle,
        after: Vec<Handle>,
        work: Work,
    ) -> Result<Handle, Status> {
        let known = &self.graph(graph)?.nodes;
        if !after.iter().all(|node| known.contains(node)) {
            return Err(INVALID_VALUE);
        }
        let handle = self.handle();
        self.nodes.insert(
            handle,
            Node {
                work,
                after,
                child: 0,
            },
        );
        self.graph(graph)?.nodes.push(handle);
        Ok(handle)
    }

    /// The work of a graph in an order that its edges permit: that of the nodes, as far as it goes.
    fn steps(&mut self, graph: Handle) -> Result<Vec<(Handle, Work)>, Status> {
        let mut left = self.graph(graph)?.nodes.clone();
        let (mut done, mut steps) = (HashSet::new(), Vec::new());
        while !left.is_empty() {
            let before = left.len();
            let mut later = Vec::new();
            for node in left {
                let found = self.node(node)?;
                if found.after.iter().all(|n| done.contains(n)) {
                    steps.push((node, found.work.clone()));
                    done.insert(node);
                } else {
                    later.push(node);
                }
            }
            if later.len() == before {
                return Err(INVALID_VALUE);
            }
            left = later;
        }
        Ok(steps)
    }

    fn instantiate(&mut self, out: Out<Handle>, graph: Handle) -> Done {
        let steps = self.steps(graph)?;
        let handle = self.handle();
        self.executables.insert(handle, Executable { steps });
        out.set(handle)
    }

    fn kernel_node(&mut self, node: KernelNode) -> Result<Work, Status> {
        let KernelNode {
            function,
            grid,
            block,
            shared,
            each,
            extra,
        } = node;
        let shape = Shape {
            grid,
            block,
            shared,
            ..Shape::default()
        };
        let launch = self.prepared(function, shape, Arguments { each, extra })?;
        Ok(Work::Kernel(launch))
    }

    /// New parameters of a kernel node, whose cluster and the like stay.
    fn replaced(&mut self, old: &Work, node: KernelNode) -> Result<Work, Status> {
        let Work::Kernel(Launch { shape: old, .. }) = old else {
            return Err(INVALID_VALUE);
        };
        let kept = (old.cluster, old.cooperative);
        let mut work = self.kernel_node(node)?;
        if let Work::Kernel(Launch { shape, .. }) = &mut work {
            (shape.cluster, shape.cooperative) = kept;
        }
        Ok(work)
    }

    fn step(&mut self, executable: Handle, node: Handle) -> Result<&mut Work, Status> {
        let found = self
            .executables
            .get_mut(&executable)
            .ok_or(INVALID_HANDLE)?;
        let step = found.steps.iter_mut().find(|(n, _)| *n == node);
        step.map(|(_, work)| work).ok_or(INVALID_VALUE)
    }

    /// Sets the work of a node of an executable graph, which must be of the same kind.
    fn set_step(&mut self, executable: Handle, node: Handle, work: Work) -> Done {
        let step = self.step(executable, node)?;
        if step.kind() != work.kind() {
            return Err(INVALID_VALUE);
        }
        *step = work;
        Ok(())
    }
}

/// Adds a node by hand.
fn add(
    out: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    work: impl FnOnce(&mut Driver) -> Result<Work, Status>,
) -> Done {
    with(|d| {
        let work = work(d)?;
        out.set(d.add_node(graph, after.list(count)?, work)?)
    })
}

/// Lists handles: as many as there is room for, or their number alone.
fn list(out: Out<Handle>, count: Out<usize>, all: &[Handle]) -> Done {
    if !out.is_null() {
        let room = count.get()?;
        let rest = room.saturating_sub(all.len());
        let zeros = std::iter::repeat_n(0, rest);
        out.set_all(all.iter().copied().take(room).chain(zeros));
        return count.set(all.len().min(room));
    }
    count.set(all.len())
}

fn add_edges(graph: Handle, from: In<Handle>, to: In<Handle>, count: usize) -> Done {
    with(|d| {
        d.graph(graph)?;
        for i in 0..count {
            let from = from.at(i)?;
            let node = d.node(to.at(i)?)?;
            if !node.after.contains(&from) {
                node.after.push(from);
            }
        }
        Ok(())
    })
}

fn remove_edges(graph: Handle, from: In<Handle>, to: In<Handle>, count: usize) -> Done {
    with(|d| {
        d.graph(graph)?;
        for i in 0..count {
            let from = from.at(i)?;
            d.node(to.at(i)?)?.after.retain(|n| *n != from);
        }
        Ok(())
    })
}

/// Takes over the nodes' work of another graph of the same form.
fn update(executable: Handle, graph: Handle) -> Done {
    with(|d| {
        let steps = d.steps(graph)?;
        let found = d.executables.get_mut(&executable).ok_or(INVALID_HANDLE)?;
        let same = found.steps.len() == steps.len()
            && found
                .steps
                .iter()
                .zip(&steps)
                .all(|((_, a), (_, b))| a.kind() == b.kind());
        if !same {
            return Err(GRAPH_EXEC_UPDATE_FAILURE);
        }
        for ((_, old), (_, new)) in found.steps.iter_mut().zip(steps) {
            *old = new;
        }
        Ok(())
    })
}

api! {
    fn cuGraphCreate(out: Out<Handle>, _flags: c_uint) {
        with(|d| {
            let handle = d.handle();
            d.graphs.insert(handle, Graph::default());
            out.set(handle)
        })
    }

    fn cuGraphDestroy(graph: Handle) {
        with(|d| {
            let graph = d.graphs.remove(&graph).ok_or(INVALID_HANDLE)?;
            for node in graph.nodes {
                d.nodes.remove(&node);
            }
            Ok(())
        })
    }

    fn cuGraphClone(out: Out<Handle>, graph: Handle) {
        with(|d| {
            let old = d.graph(graph)?.nodes.clone();
            let new: Vec<Handle> = old.iter().map(|_| d.handle()).collect();
            for (from, to) in old.iter().zip(&new) {
                let mut node = d.node(*from)?.clone();
                for after in &mut node.after {
                    if let Some(i) = old.iter().position(|n| n == after) {
                        *after = new[i];
                    }
                }
                d.nodes.insert(*to, node);
            }
            let handle = d.handle();
            d.graphs.insert(handle, Graph { nodes: new });
            out.set(handle)
        })
    }

    fn cuGraphNodeFindInClone(out: Out<Handle>, node: Handle, clone: Handle) {
        let _ = (out, node, clone);
        crate::stubs::say("cuGraphNodeFindInClone");
        Err(NOT_SUPPORTED)
    }

    fn cuGraphAddKernelNode(out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, node: In<KernelNode>) {
        add(out, graph, after, count, |d| d.kernel_node(node.get()?))
    }

    fn cuGraphAddKernelNode_v2(out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, node: In<KernelNode2>) {
        add(out, graph, after, count, |d| {
            let KernelNode2 { mut first, kernel, .. } = node.get()?;
            if first.function == 0 {
                first.function = kernel;
            }
            d.kernel_node(first)
        })
    }

    fn cuGraphAddMemcpyNode(out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, copy: In<Copy3D>, _context: Handle) {
        add(out, graph, after, count, |_| Ok(Work::Copy(Copy::try_from(copy.get()?)?)))
    }

    fn cuGraphAddMemsetNode(out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, set: In<SetNode>, _context: Handle) {
        add(out, graph, after, count, |_| Ok(set.get()?.into()))
    }

    fn cuGraphAddHostNode(out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, host: In<HostNode>) {
        add(out, graph, after, count, |_| host.get()?.try_into())
    }

    fn cuGraphAddEmptyNode(out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize) {
        add(out, graph, after, count, |_| Ok(Work::Nothing))
    }

    fn cuGraphAddEventRecordNode(out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, event: Handle) {
        add(out, graph, after, count, |_| Ok(Work::Record(event, 0)))
    }

    fn cuGraphAddEventWaitNode(out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, event: Handle) {
        add(out, graph, after, count, |_| Ok(Work::Wait(event, 0)))
    }

    fn cuGraphAddMemFreeNode(out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, address: u64) {
        add(out, graph, after, count, |_| Ok(Work::Free(address)))
    }

    fn cuGraphAddChildGraphNode(out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, child: Handle) {
        with(|d| {
            let steps = d.steps(child)?;
            let work = Work::Graph(steps.into_iter().map(|(_, work)| work).collect());
            let node = d.add_node(graph, after.list(count)?, work)?;
            d.node(node)?.child = child;
            out.set(node)
        })
    }

    fn cuGraphChildGraphNodeGetGraph(node: Handle, out: Out<Handle>) {
        with(|d| out.set(d.node(node)?.child))
    }

    fn cuGraphDestroyNode(node: Handle) {
        with(|d| {
            d.nodes.remove(&node).ok_or(INVALID_HANDLE)?;
            for graph in d.graphs.values_mut() {
                graph.nodes.retain(|n| *n != node);
            }
            for other in d.nodes.values_mut() {
                other.after.retain(|n| *n != node);
            }
            Ok(())
        })
    }

    fn cuGraphAddDependencies(graph: Handle, from: In<Handle>, to: In<Handle>, count: usize) {
        add_edges(graph, from, to, count)
    }

    fn cuGraphAddDependencies_v2(graph: Handle, from: In<Handle>, to: In<Handle>, _data: In<u8>, count: usize) {
        add_edges(graph, from, to, count)
    }

    fn cuGraphRemoveDependencies(graph: Handle, from: In<Handle>, to: In<Handle>, count: usize) {
        remove_edges(graph, from, to, count)
    }

    fn cuGraphRemoveDependencies_v2(graph: Handle, from: In<Handle>, to: In<Handle>, _data: In<u8>, count: usize) {
        remove_edges(graph, from, to, count)
    }

    fn cuGraphGetNodes(graph: Handle, nodes: Out<Handle>, count: Out<usize>) {
        with(|d| list(nodes, count, &d.graph(graph)?.nodes))
    }

    fn cuGraphGetRootNodes(graph: Handle, nodes: Out<Handle>, count: Out<usize>) {
        with(|d| {
            let mut all = d.graph(graph)?.nodes.clone();
            all.retain(|n| d.nodes.get(n).is_some_and(|n| n.after.is_empty()));
            list(nodes, count, &all)
        })
    }

    fn cuGraphNodeGetDependencies(node: Handle, nodes: Out<Handle>, count: Out<usize>) {
        with(|d| list(nodes, count, &d.node(node)?.after))
    }

    fn cuGraphNodeGetType(node: Handle, kind: Out<c_int>) {
        with(|d| kind.set(d.node(node)?.work.kind()))
    }

    fn cuGraphKernelNodeSetParams(node: Handle, kernel: In<KernelNode>) {
        with(|d| {
            let old = d.node(node)?.work.clone();
            d.node(node)?.work = d.replaced(&old, kernel.get()?)?;
            Ok(())
        })
    }

    fn cuGraphKernelNodeSetParams_v2(node: Handle, kernel: In<KernelNode2>) {
        with(|d| {
            let old = d.node(node)?.work.clone();
            d.node(node)?.work = d.replaced(&old, kernel.get()?.first)?;
            Ok(())
        })
    }

    fn cuGraphMemcpyNodeSetParams(node: Handle, copy: In<Copy3D>) {
        with(|d| {
            d.node(node)?.work = Work::Copy(copy.get()?.try_into()?);
            Ok(())
        })
    }

    fn cuGraphMemsetNodeSetParams(node: Handle, set: In<SetNode>) {
        with(|d| {
            d.node(node)?.work = set.get()?.into();
            Ok(())
        })
    }

    fn cuGraphInstantiateWithFlags(out: Out<Handle>, graph: Handle, flags: u64) {
        // Four flags, all about when and where memory and work are made ready.
        if flags > 15 {
            return Err(INVALID_VALUE);
        }
        with(|d| d.instantiate(out, graph))
    }

    fn cuGraphInstantiate_v2(out: Out<Handle>, graph: Handle, _node: Out<Handle>, _log: Out<c_char>, _room: usize) as cuGraphInstantiate {
        with(|d| d.instantiate(out, graph))
    }

    fn cuGraphInstantiateWithParams(out: Out<Handle>, graph: Handle, parameters: Out<[u64; 4]>) as cuGraphInstantiateWithParams_ptsz {
        let [flags, stream, ..] = parameters.get()?;
        parameters.set([flags, stream, 0, 0])?;
        with(|d| d.instantiate(out, graph))
    }

    fn cuGraphLaunch(executable: Handle, stream: Handle) as cuGraphLaunch_ptsz {
        let steps = with(|d| {
            let found = d.executables.get(&executable).ok_or(INVALID_HANDLE)?;
            Ok(found.steps.iter().map(|(_, work)| work.clone()).collect())
        })?;
        submit(stream, Work::Graph(steps))
    }

    fn cuGraphUpload(executable: Handle, _stream: Handle) as cuGraphUpload_ptsz {
        with(|d| d.executables.get(&executable).map(|_| ()).ok_or(INVALID_HANDLE))
    }

    fn cuGraphExecDestroy(executable: Handle) {
        with(|d| d.executables.remove(&executable).map(|_| ()).ok_or(INVALID_HANDLE))
    }

    fn cuGraphExecGetFlags(executable: Handle, flags: Out<u64>) {
        with(|d| d.executables.get(&executable).map(|_| ()).ok_or(INVALID_HANDLE))?;
        flags.set(0)
    }

    fn cuGraphExecKernelNodeSetParams(executable: Handle, node: Handle, kernel: In<KernelNode>) {
        with(|d| {
            let old = d.step(executable, node)?.clone();
            let work = d.replaced(&old, kernel.get()?)?;
            d.set_step(executable, node, work)
        })
    }

    fn cuGraphExecKernelNodeSetParams_v2(executable: Handle, node: Handle, kernel: In<KernelNode2>) {
        with(|d| {
            let old = d.step(executable, node)?.clone();
            let work = d.replaced(&old, kernel.get()?.first)?;
            d.set_step(executable, node, work)
        })
    }

    fn cuGraphExecMemcpyNodeSetParams(executable: Handle, node: Handle, copy: In<Copy3D>, _context: Handle) {
        with(|d| d.set_step(executable, node, Work::Copy(copy.get()?.try_into()?)))
    }

    fn cuGraphExecMemsetNodeSetParams(executable: Handle, node: Handle, set: In<SetNode>, _context: Handle) {
        with(|d| d.set_step(executable, node, set.get()?.into()))
    }

    fn cuGraphExecHostNodeSetParams(executable: Handle, node: Handle, host: In<HostNode>) {
        with(|d| d.set_step(executable, node, host.get()?.try_into()?))
    }

    fn cuGraphExecUpdate(executable: Handle, graph: Handle, error: Out<Handle>, result: Out<c_int>) {
        let updated = update(executable, graph);
        error.set_if_wanted(0);
        result.set_if_wanted(c_int::from(updated.is_err()));
        updated
    }

    fn cuGraphExecUpdate_v2(executable: Handle, graph: Handle, result: Out<[u64; 3]>) {
        let updated = update(executable, graph);
        result.set_if_wanted([u64::from(updated.is_err()), 0, 0]);
        updated
    }
}
