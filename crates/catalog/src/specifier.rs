//! Resolves a specifier such as `./other` to a file of the catalog.

use crate::error::Flaw;

/// The file that `specifier` refers to in `importer`. The extension is optional, and `./x.js` may refer to `x.ts`, as in TypeScript.
pub fn resolve(importer: &str, specifier: &str, exists: impl Fn(&str) -> bool) -> Result<String, Flaw> {
    if !(specifier.starts_with("./") || specifier.starts_with("../")) {
        return Err(Flaw::ForeignImport(specifier.to_owned()));
    }
    let path = join(importer, specifier).ok_or_else(|| Flaw::ForeignImport(specifier.to_owned()))?;
    let typescript = path.strip_suffix(".js").map(|stem| format!("{stem}.ts"));
    let candidates = [Some(path.clone()), typescript, Some(format!("{path}.ts")), Some(format!("{path}.js")), Some(format!("{path}.mjs"))];
    candidates.into_iter().flatten().find(|candidate| exists(candidate)).ok_or_else(|| Flaw::MissingImport(specifier.to_owned()))
}

/// `None` if the path leaves the catalog.
fn join(importer: &str, specifier: &str) -> Option<String> {
    let mut parts: Vec<&str> = importer.split('/').collect();
    parts.pop();
    for part in specifier.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_catalog_are_found() {
        let files = ["index.ts", "a/b.ts", "a/c.js", "d.mjs"];
        let find = |importer, specifier| resolve(importer, specifier, |file| files.contains(&file));
        for (importer, specifier, file) in [
            ("index.ts", "./a/b.ts", "a/b.ts"),
            ("index.ts", "./a/b", "a/b.ts"),
            ("index.ts", "./a/b.js", "a/b.ts"),
            ("index.ts", "./a/../d", "d.mjs"),
            ("a/b.ts", "./c.js", "a/c.js"),
            ("a/b.ts", "../index.ts", "index.ts"),
        ] {
            assert_eq!(find(importer, specifier).as_deref(), Ok(file));
        }
        for foreign in ["fs", "node:fs", "https://example.com/x.js", "/etc/passwd", "../x.js", "#internal", "", "..", "./../../x"] {
            assert_eq!(find("index.ts", foreign), Err(Flaw::ForeignImport(foreign.to_owned())));
        }
        assert_eq!(find("index.ts", "./nope"), Err(Flaw::MissingImport("./nope".to_owned())));
    }
}
