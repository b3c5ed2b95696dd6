//! The golden tables.

use std::collections::BTreeMap;

use layout_core::Layout;

/// A row, a column and a block (or matrix), 0 where the table has none.
pub(crate) type Place = [i64; 3];

/// The places of each lane's values.
pub(crate) type Table = Vec<(i64, Vec<Place>)>;

/// The tables of a file by name.
pub(crate) fn tables(text: &str) -> BTreeMap<String, Table> {
    let mut all = BTreeMap::new();
    let mut names: Vec<&str> = Vec::new();
    for line in text.lines() {
        let (first, rest) = line.split_once(',').expect("a line has fields");
        if first == "fragment" {
            names = rest.split(';').collect();
            for name in &names {
                assert!(
                    all.insert((*name).to_owned(), Table::new()).is_none(),
                    "{name} twice"
                );
            }
            continue;
        }
        let places: Vec<Place> = rest
            .split(',')
            .map(|field| {
                let mut place = [0; 3];
                for (axis, number) in field.split('/').enumerate() {
                    place[axis] = number.parse().unwrap();
                }
                place
            })
            .collect();
        for name in &names {
            all.get_mut(*name)
                .unwrap()
                .push((first.parse().unwrap(), places.clone()));
        }
    }
    all
}

/// The table of that name.
pub(crate) fn table<'a>(all: &'a BTreeMap<String, Table>, name: &str) -> &'a Table {
    all.get(name)
        .unwrap_or_else(|| panic!("no golden table {name}"))
}

/// Compares a thread-value layout with a table, every lane and value. `index` numbers a place as the layout does.
pub(crate) fn compare(what: &str, layout: &Layout, golden: &Table, index: impl Fn(Place) -> i64) {
    assert_eq!(
        layout.get(0).unwrap().size(),
        golden.len() as i64,
        "{what}: lanes"
    );
    for (lane, places) in golden {
        assert_eq!(
            layout.get(1).unwrap().size(),
            places.len() as i64,
            "{what}: values"
        );
        for (value, place) in places.iter().enumerate() {
            assert_eq!(
                layout.at(&[*lane, value as i64]),
                index(*place),
                "{what}: lane {lane}, value {value}, {place:?}"
            );
        }
    }
}

/// Every element of the table occurs `times` times, and together they are `elements`.
pub(crate) fn covers(what: &str, golden: &Table, elements: i64, times: usize) {
    let mut seen: BTreeMap<Place, usize> = BTreeMap::new();
    for place in golden.iter().flat_map(|(_, places)| places) {
        *seen.entry(*place).or_default() += 1;
    }
    assert_eq!(seen.len() as i64, elements, "{what}: elements");
    assert!(
        seen.values().all(|&n| n == times),
        "{what}: {times} times each"
    );
}

/// Each element exactly once.
pub(crate) fn once(what: &str, layout: &Layout, elements: i64) {
    assert_eq!(layout.size(), elements, "{what}: elements");
    assert!(layout.is_bijective(), "{what}: each element exactly once");
}
