//! The entities of a catalog: its exports, as they are described to a model.

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EntityKind {
    Function,
    Class,
    Constant,
    Object,
}

impl EntityKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Class => "class",
            Self::Constant => "constant",
            Self::Object => "object",
        }
    }
}

/// An export of a catalog's entry file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entity {
    pub name: String,
    pub kind: EntityKind,
    /// One line: parameters with their types, or the type of a constant.
    pub signature: String,
    /// The first paragraph of the doc comment, in one line.
    pub description: String,
    /// Parameters of the function, or of the class's constructor.
    pub parameters: Vec<Parameter>,
    /// Public methods of a class or object, in source order, with inherited ones last.
    pub methods: Vec<Method>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Method {
    pub name: String,
    /// Called on the class or object itself, not on an instance.
    pub is_static: bool,
    pub signature: String,
    pub description: String,
    pub parameters: Vec<Parameter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Parameter {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub description: String,
    pub optional: bool,
    pub default: Option<String>,
    pub rest: bool,
}

impl Parameter {
    /// The parameter as it appears in a signature.
    pub fn signature(&self) -> String {
        let Self { name, kind, .. } = self;
        match (&self.default, self.rest, self.optional) {
            (Some(default), ..) => format!("{name}: {kind} = {default}"),
            (None, true, _) => format!("...{name}: {kind}"),
            (None, false, true) => format!("{name}?: {kind}"),
            (None, false, false) => format!("{name}: {kind}"),
        }
    }
}
