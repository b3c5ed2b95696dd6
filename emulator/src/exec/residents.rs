//! Which clusters run: all that the device holds at once are resident and run in turn, the others start in order when one ends.
//!
//! A cluster runs to its end unless it waits for others: its warps do nothing but look at global memory, or go round in a loop. It is then put aside with all its
//! state, and the next one starts, or one that was put aside goes on. So a grid whose blocks do not wait costs no more than one block after the other, and what
//! happens depends on the device that is emulated, not on the host.
//!
//! **Host threads.** A kernel in which blocks may see each other's work ([`Program::communicates`]) runs on one thread, so that every run gives the same. The blocks
//! of the others are spread over all threads.
//!
//! **No progress.** All resident clusters wait, and no other may start. If each is seen to go round, with the same registers, and no memory has changed, they do so
//! for ever. Loops that count or look at the clock never are as they were: they may run for as many instructions as one warp may execute.
//!
//! Example: every block adds 1 to a counter and waits until it is the number of blocks. Of 132 blocks, each in turn adds 1, looks four times and is put aside;
//! the last finds 132, and all the others when they come to their next turn.
//!
//! [`Program::communicates`]: crate::ir::Program::communicates

use std::collections::VecDeque;
use std::sync::Mutex;

use super::{Context, Outcome, Tally, Worker, run, schedule};
use crate::launch::Progress;

/// What a block counts for at least in [`crate::Options::total_step_limit`]: about what it costs to start one.
const LEAST_STEPS: u64 = 512;

/// A cluster that waits for others.
struct Parked {
    worker: Box<Worker>,
    /// It goes round for ever if nothing has happened since this many events.
    round: Option<u64>,
}

/// What the host threads share.
#[derive(Default)]
struct State {
    /// The next cluster to start.
    next: u64,
    /// Clusters that host threads run now.
    running: u64,
    parked: VecDeque<Parked>,
    /// Memory of clusters that have ended: in boxes, since each block takes it from here and puts it back.
    #[allow(clippy::vec_box)] // boxes are what is taken and put back
    idle: Vec<Box<Worker>>,
    /// Blocks that have ended.
    done: u64,
    /// How many times a cluster has stopped after others could have seen what it did, or has ended.
    events: u64,
    /// Since the last event: warp instructions, turns of clusters, and those parked that go round.
    steps: u64,
    turns: usize,
    rounds: usize,
    /// Clusters are to be looked at closely: some go round, or all wait.
    watch: bool,
    /// Nothing is left to do, or the run is given up.
    over: bool,
}

/// The clusters of a launch.
pub(crate) struct Residents<'a> {
    cx: &'a Context<'a>,
    progress: Option<&'a Progress>,
    state: Mutex<State>,
}

impl<'a> Residents<'a> {
    pub(crate) fn new(cx: &'a Context<'a>, progress: Option<&'a Progress>) -> Self {
        Self {
            cx,
            progress,
            state: Mutex::new(State::default()),
        }
    }

    /// Runs clusters until none is left that another host thread does not run. The result is what they count and find.
    pub(crate) fn work(&self) -> Tally {
        let mut tally = Tally::new(self.cx);
        while let Some(mut worker) = self.take() {
            worker.exchange(&mut tally);
            let outcome = run(self.cx, &mut worker);
            self.stop(worker, &outcome, &mut tally);
        }
        tally
    }

    /// The cluster to run now: the next, if the device has room for it, else the one that has been waiting longest.
    fn take(&self) -> Option<Box<Worker>> {
        let cx = self.cx;
        let mut state = self.state.lock().ok()?;
        let state = &mut *state;
        if state.over {
            return None;
        }
        let resident = state.running + state.parked.len() as u64;
        let mut worker = if state.next < cx.clusters() && resident < cx.residents {
            let (seed, place) = (cx.schedule, state.next);
            // Blocks that wait for earlier ones count on these to have started: only those that are resident together change places.
            let first = place - place % cx.residents;
            let count = cx.residents.min(cx.clusters() - first);
            let index = first + schedule::cluster(seed, place - first, count);
            state.next += 1;
            let mut worker = state
                .idle
                .pop()
                .unwrap_or_else(|| Box::new(Worker::new(cx)));
            worker.begin(cx, index * cx.stride);
            worker
        } else {
            let Parked { worker, round } = state.parked.pop_front()?;
            state.rounds -= usize::from(round == Some(state.events));
            worker
        };
        worker.watch(state.watch, state.events);
        state.running += 1;
        Some(worker)
    }

    /// A cluster has ended, or waits. Its counts go to `tally`.
    fn stop(&self, mut worker: Box<Worker>, outcome: &Outcome, tally: &mut Tally) {
        let cx = self.cx;
        let Ok(mut state) = self.state.lock() else {
            return;
        };
        let state = &mut *state;
        state.running -= 1;
        let ended = matches!(outcome, Outcome::Ended);
        let (steps, published) = worker.since_last_stop();
        if ended || published {
            state.events += 1;
            (state.steps, state.turns, state.rounds, state.watch) = (0, 0, 0, false);
        } else {
            state.steps += steps;
            state.turns += 1;
        }
        let (size, blocks) = (cx.blocks() as u64, cx.clusters() * cx.blocks() as u64);
        if let Outcome::Ended = outcome {
            let least = (LEAST_STEPS * size).saturating_sub(worker.steps());
            let limit = cx.total_step_limit;
            let reached = cx.count(least) == Some(true) && !worker.is_full();
            state.done += size;
            if reached {
                worker.report_total(cx, limit, blocks - state.done.min(blocks));
            }
            if let Some(progress) = self.progress {
                progress(state.done, blocks);
            }
        }
        worker.exchange(tally);
        state.over |= worker.is_full();
        let Outcome::Waits { round } = outcome else {
            state.idle.push(worker);
            return;
        };
        let round = round.then(|| worker.all_events());
        state.rounds += usize::from(round == Some(state.events));
        state.watch |= round.is_some();
        state.parked.push_back(Parked { worker, round });
        let resident = state.parked.len();
        let is_full = state.next == cx.clusters() || resident as u64 >= cx.residents;
        if state.running > 0 || !is_full || state.over {
            return;
        }
        state.watch |= state.turns > resident;
        let forever = state.rounds == resident;
        if forever || state.steps > cx.step_limit {
            let first = state.parked.iter_mut().map(|p| &mut p.worker);
            if let Some(worker) = first.min_by_key(|w| w.index()) {
                worker.exchange(tally);
                worker.report_waits(cx, forever, resident as u64, cx.clusters() - state.next);
                worker.exchange(tally);
            }
            state.over = true;
        }
    }
}
