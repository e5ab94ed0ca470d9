//! The table that describes callable symbols to a model: TSV with a header line and one line per symbol.
//!
//! ```text
//! symbol  kind             name             signature                               description
//! e1      function         statistics.mean  mean(values: readonly number[]): number  The arithmetic mean.
//! p1      parameter of e1  values           readonly number[]                        What to average.
//! ```

use crate::catalogs::Catalogs;
use crate::entity::Parameter;
use crate::error::PickError;
use crate::symbol::Symbol;
use crate::symbols::EntitySymbols;
use std::fmt::Display;

pub const HEADER: &str = "symbol\tkind\tname\tsignature\tdescription\n";

/// The table of a wave or of a whole symbol space. A method's or parameter's line follows that of its owner.
pub fn table(catalogs: &Catalogs, exposed: &[EntitySymbols]) -> Result<String, PickError> {
    let mut text = HEADER.to_owned();
    for symbols in exposed {
        let (catalog, entity) = catalogs.entity(&symbols.catalog, &symbols.entity)?;
        let name = format!("{}.{}", catalog.name, entity.name);
        line(&mut text, symbols.symbol, entity.kind.as_str(), &name, &entity.signature, &entity.description);
        parameters(&mut text, symbols.symbol, &symbols.parameters, &entity.parameters);
        for (method_symbols, method) in symbols.methods.iter().zip(&entity.methods) {
            let kind = if method.is_static && entity.kind == crate::EntityKind::Class { "static method" } else { "method" };
            let kind = format!("{kind} of {}", symbols.symbol);
            line(&mut text, method_symbols.symbol, kind, &method.name, &method.signature, &method.description);
            parameters(&mut text, method_symbols.symbol, &method_symbols.parameters, &method.parameters);
        }
    }
    Ok(text)
}

fn parameters(text: &mut String, owner: Symbol, symbols: &[Symbol], parameters: &[Parameter]) {
    for (symbol, parameter) in symbols.iter().zip(parameters) {
        let kind = if parameter.optional { "optional parameter of" } else { "parameter of" };
        let default = parameter.default.as_ref().map(|default| format!(" = {default}")).unwrap_or_default();
        line(text, *symbol, format!("{kind} {owner}"), &parameter.name, &format!("{}{default}", parameter.kind), &parameter.description);
    }
}

fn line(text: &mut String, symbol: Symbol, kind: impl Display, name: &str, signature: &str, description: &str) {
    text.push_str(&format!("{symbol}\t{kind}\t{}\t{}\t{}\n", escaped(name), escaped(signature), escaped(description)));
}

/// Escapes tabs and line ends, so that a field stays in its column.
fn escaped(field: &str) -> String {
    let mut text = String::with_capacity(field.len());
    for character in field.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '\t' => text.push_str("\\t"),
            '\n' | '\u{2028}' | '\u{2029}' | '\u{85}' | '\u{b}' | '\u{c}' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            character => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn fields_stay_in_their_column() {
        assert_eq!(escaped("a\tb\nc\rd\\e\u{2028}f"), "a\\tb\\nc\\rd\\\\e\\nf");
    }
}
