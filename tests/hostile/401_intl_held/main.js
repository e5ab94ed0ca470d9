globalThis.held = {
  date: new Intl.DateTimeFormat("de-DE", { timeZone: "UTC" }),
  number: new Intl.NumberFormat("de-DE"),
  list: new Intl.ListFormat("en"),
  plural: new Intl.PluralRules("en"),
  relative: new Intl.RelativeTimeFormat("en"),
  collator: new Intl.Collator("sv"),
  names: new Intl.DisplayNames("en", { type: "region" }),
  segmenter: new Intl.Segmenter("en", { granularity: "word" }),
  locale: new Intl.Locale("en-GB"),
  duration: new Intl.DurationFormat("en"),
};
held.format = held.number.format;
held.compare = held.collator.compare;
held.segments = held.segmenter.segment("two words");
held.iterator = held.segments[Symbol.iterator]();
held.iterator.next();
"kept";
