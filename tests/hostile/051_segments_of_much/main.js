[...new Intl.Segmenter("en", { granularity: "word" }).segment("a b ".repeat(1e7))].length;
