//! `sgemm-r700-64` stores where the R700's local data share puts what threads write, and its reads are composed from the inverse of that map. Held
//! against the manual's formula, byte by byte, and against the memories' models.

use tilewright::banks::r700::write_place;
use tilewright::banks::{AMD_GCN, AMD_R700, Access, BankModel, NVIDIA, wavefronts};
use tilewright::kernels::gemm::{Config, Operands, Specialized};
use tilewright::kernels::sources::outer::maps::{DEPTH, TILE};
use tilewright::kernels::sources::outer::{OuterProduct, Side, r700};

fn named(name: &str) -> Specialized {
    name.parse::<Config>().expect("a configuration").kernel()
}

/// bank = thread mod 4, entry = ((thread >> 2)·stride + index) / 4, as bytes: a bank is 16 bytes wide, an entry of all four 64.
#[test]
fn threads_store_where_the_manual_says() {
    let maps = OuterProduct::SgemmR700.maps().expect("it composes");
    for along in [true, false] {
        let stores = maps.stores(along).expect("it composes");
        for thread in 0..r700::THREADS {
            // Two vectors, two operands, two stages.
            for slot in 0..8 {
                let [vector, operand, stage] = [slot % 2, slot / 2 % 2, slot / 4];
                for element in 0..4 {
                    let value = element + 4 * vector;
                    let byte = stores.at(&[thread, value, operand, stage]);
                    let place = write_place(r700::THREADS, r700::STRIDE, 4 * slot, thread);
                    let (bank, entry) = place.expect("a legal write");
                    let by_formula = 16 * bank + 64 * entry + 4 * element;
                    assert_eq!(byte, by_formula, "thread {thread}, slot {slot}");
                }
            }
        }
    }
}

/// What is read is what was stored: for each element, the byte of the stage is the one that the thread which loaded it wrote.
#[test]
fn reads_are_the_inverse_of_the_writes() {
    let maps = OuterProduct::SgemmR700.maps().expect("it composes");
    let load = maps.load(true);
    let mut written = vec![None; (TILE * DEPTH) as usize];
    for thread in 0..maps.threads() {
        for value in 0..maps.values() {
            let element = load.tv.at(&[thread, value]) as usize;
            let byte = load.store.at(&[thread, value]);
            assert_eq!(written[element].replace(byte), None, "element {element}");
        }
    }
    for side in Side::ALL {
        let (fetched, needed) = maps.fragment_read(side).expect("it composes");
        let first = maps.first(side).expect("it composes");
        let steps = maps.steps().expect("it composes");
        for thread in 0..maps.threads() {
            for value in 0..8 {
                for k in 0..DEPTH {
                    let element = first.index(thread) + steps.index(value) + TILE * k;
                    let at = [thread, value, k];
                    assert_eq!(Some(fetched.at(&at)), written[element as usize]);
                    assert_eq!(fetched.at(&at), needed.at(&at));
                }
            }
        }
    }
}

#[test]
fn the_proof_states_the_wavefronts_of_three_memories() {
    for operands in Operands::ALL {
        let proof = named("sgemm-r700-64").prove(operands).expect("it proves");
        let holds = |name: &str| {
            let found = proof.obligations.iter().find(|o| o.name.starts_with(name));
            found.unwrap_or_else(|| panic!("{name}")).evidence.clone()
        };
        for name in ["writeX", "writeY"] {
            assert_eq!(
                holds(&format!("{name}: wavefronts")),
                "nvidia 4 (ideal 4), amd-gcn 4 (ideal 4), amd-r700 8 (ideal 8)"
            );
        }
        for name in ["readX", "readY"] {
            assert_eq!(
                holds(&format!("{name}: wavefronts")),
                "nvidia 2 (ideal 2), amd-gcn 1 (ideal 1), amd-r700 8 (ideal 8)"
            );
        }
        let bijective = holds("the R700's write map is bijective");
        assert!(
            bijective.ends_with("is a bijection onto 0..2304"),
            "{bijective}"
        );
    }
}

/// The stride matters to NVIDIA's memory and not to the R700's: an even number of entries costs twice the wavefronts there.
#[test]
fn an_odd_stride_of_entries_is_free_of_conflicts_on_both() {
    let store = |model: &BankModel, stride: i64| {
        let lane = |thread: usize| {
            let place = write_place(r700::THREADS, stride, 0, thread as i64);
            let (bank, entry) = place.expect("a legal write");
            16 * bank + 64 * entry
        };
        let count = wavefronts(model, Access::St128, &std::array::from_fn(lane));
        count.expect("a store").wavefronts
    };
    for entries in 1..=16 {
        let stride = 4 * entries;
        let on_nvidia = if entries % 2 == 0 { 8 } else { 4 };
        assert_eq!(store(&NVIDIA, stride), on_nvidia, "{entries} entries");
        assert_eq!(store(&AMD_R700, stride), 8, "{entries} entries");
    }
    assert_eq!(r700::STRIDE, 4 * 9);
    assert_eq!(store(&AMD_GCN, r700::STRIDE), 4);
}
