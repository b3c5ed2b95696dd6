//! The commands of the README, `docs/cli.md`, `docs/cli-run.md` and `docs/cli-banks.md` work, and print what the pages show.

mod common;

use common::check_page;

#[test]
fn the_command_of_the_readme() {
    check_page(include_str!("../../README.md"), &[], 1);
}

#[test]
fn the_commands_of_the_commands_page() {
    let page = concat!(
        include_str!("../../docs/cli.md"),
        include_str!("../../docs/cli-run.md")
    );
    check_page(page, &[("ptx", "double.ptx")], 4);
}

#[test]
fn the_commands_of_banks_and_derive() {
    let page = include_str!("../../docs/cli-banks.md");
    check_page(page, &[("csv", "accesses.csv")], 5);
}

#[test]
fn the_commands_of_the_pages_on_custom_kernels() {
    check_page(include_str!("../../docs/own-kernels.md"), &[], 1);
}

#[test]
fn the_commands_of_the_page_on_devices() {
    check_page(include_str!("../../docs/devices.md"), &[], 2);
}

#[test]
fn the_commands_of_the_page_on_products_over_devices() {
    check_page(include_str!("../../docs/devices-products.md"), &[], 4);
}
