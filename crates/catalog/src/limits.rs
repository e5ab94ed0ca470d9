//! Every limit on a catalog, each with its reason.

/// A useful library has tens of files. A folder with thousands is a mistake, such as `node_modules`.
pub const FILES_MAX: usize = 256;
/// Folder depth, counted from the catalog's folder.
pub const DEPTH_MAX: usize = 8;
/// One file: hand-written source, not generated data.
pub const FILE_BYTES_MAX: u64 = 1 << 20;
/// All files together. The bundle is part of a run's source (at most 16 MB), with the bundles of a few other catalogs.
pub const CATALOG_BYTES_MAX: u64 = 2 << 20;
/// Models type the name in every call.
pub const NAME_CHARS_MAX: usize = 64;
/// Length of a table field. Longer texts are truncated, so that one entity does not crowd out the rest.
pub const SIGNATURE_CHARS_MAX: usize = 600;
pub const TYPE_CHARS_MAX: usize = 240;
pub const DEFAULT_CHARS_MAX: usize = 60;
pub const DESCRIPTION_CHARS_MAX: usize = 400;
/// How many base classes of a class are followed.
pub const BASES_MAX: usize = 16;
/// Suggestions for an unknown name.
pub const NEAR_MAX: usize = 5;
