//! Every bound on what a catalog may be, in one place, each with its reason.

/// A library that teaches well has tens of files; a folder with thousands is a mistake, such as `node_modules`.
pub const FILES_MAX: usize = 256;
/// Folders within folders, counted from the catalog's own.
pub const DEPTH_MAX: usize = 8;
/// One file: source that people write, not generated data.
pub const FILE_BYTES_MAX: u64 = 1 << 20;
/// All files together. The bundle travels in the source of a run (at most 16 MB), with those of a few other catalogs.
pub const CATALOG_BYTES_MAX: u64 = 2 << 20;
/// A name is typed by models in every call.
pub const NAME_CHARS_MAX: usize = 64;
/// A line of the table that teaches; past these a text is cut, so that one entity can't crowd out the rest.
pub const SIGNATURE_CHARS_MAX: usize = 600;
pub const TYPE_CHARS_MAX: usize = 240;
pub const DEFAULT_CHARS_MAX: usize = 60;
pub const DESCRIPTION_CHARS_MAX: usize = 400;
/// How far a class is followed up to the classes it extends.
pub const BASES_MAX: usize = 16;
/// Names offered when one is not known.
pub const NEAR_MAX: usize = 5;
