//! The contract of outputs whose ended texts are in any implementation of `Blobs`.

use crate::place::Place;
use heapstead_store::Outputs;
use heapstead_store::outputs::{Extent, PageRequest};
use heapstead_types::ExecutionId;
use std::path::Path;

fn id(fill: u8) -> ExecutionId {
    ExecutionId::from_random([fill; 16])
}

fn lines(count: usize) -> String {
    (1..=count).map(|number| format!("line {number}\n")).collect()
}

fn requests() -> Vec<PageRequest> {
    let by_line = [(1, 100), (150, 3), (2_999, 10), (5_000, 1)].map(|(offset, limit)| PageRequest::lines(offset, limit));
    let by_byte = [(0, 100), (4090, 10), (9_000, 20_000), (1 << 20, 1)].map(|(offset, limit)| PageRequest::Bytes { offset, limit });
    by_line.into_iter().chain(by_byte).collect()
}

fn files_in(folder: &Path) -> usize {
    let folders = std::fs::read_dir(folder).into_iter().flatten().flatten();
    folders.map(|folder| std::fs::read_dir(folder.path()).expect("folder").count()).sum()
}

pub fn an_output_that_became_a_blob_has_the_same_pages(place: &dyn Place) {
    let spool = tempfile::tempdir().expect("folder");
    let outputs = Outputs::with_blobs(spool.path().join("spool"), place.blobs());
    let mut writer = outputs.writer(&id(7));
    writer.append(lines(3_000).into_bytes()).expect("written");
    let pages = |extent: Extent, ended| {
        let pages = requests().into_iter().map(|request| outputs.page(&id(7), extent, ended, request).expect("a page"));
        pages.collect::<Vec<_>>()
    };
    assert_eq!(outputs.measure(&id(7)).expect("measured"), writer.extent());
    let running = pages(writer.extent(), false);
    let extent = writer.finish().expect("finished");
    assert_eq!(files_in(&spool.path().join("spool")), 0, "the files have become blobs");
    assert_eq!(extent, Extent { bytes: lines(3_000).len() as u64, lines: 3_000 });
    assert_eq!(pages(extent, true), running);
    assert_eq!(place.raw(&format!("07/{}.out", id(7))), Some(lines(3_000).into_bytes()));
    outputs.remove(&id(7));
    assert!(outputs.page(&id(7), extent, true, PageRequest::lines(1, 1)).is_err());
}

pub fn an_output_that_did_not_become_a_blob_is_read_from_its_spool(place: &dyn Place) {
    let spool = tempfile::tempdir().expect("folder");
    let outputs = Outputs::with_blobs(spool.path().join("spool"), place.blobs());
    let mut writer = outputs.writer(&id(8));
    writer.append(lines(3_000).into_bytes()).expect("written");
    place.down();
    assert!(writer.finish().is_err());
    place.up();
    let extent = outputs.recover(&id(8)).expect("recovered");
    assert_eq!(extent.lines, 3_000);
    let page = outputs.page(&id(8), extent, true, PageRequest::lines(2_999, 5)).expect("a page");
    assert_eq!(page.data, "line 2999\nline 3000\n");
}
