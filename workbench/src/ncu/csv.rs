//! Nsight Compute's CSV: records, and numbers as it prints them.
//!
//! Fields are quoted as RFC 4180 says, so that a kernel's name may hold commas and a demangled name quotes; records may have line breaks inside
//! quotes. Lines of the tool's own output (`==PROF== …`) stand before the table when it was written to the same file.

/// A record: its fields and the line that it begins on, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) fields: Vec<String>,
    pub(super) line: usize,
}

/// All records of a text, without empty lines and the tool's own output. The error is the line of a quote that does not end.
pub(super) fn records(text: &str) -> Result<Vec<Record>, usize> {
    let text = text.trim_start_matches('\u{feff}');
    let mut records = Vec::new();
    let mut fields = vec![String::new()];
    let mut quoted = None;
    let (mut line, mut begins) = (1, 1);
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        if c == '\n' {
            line += 1;
        }
        let field = fields.last_mut();
        match (c, quoted, field) {
            ('"', Some(_), Some(field)) if characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            ('"', Some(_), _) => quoted = None,
            ('"', None, Some(field)) if field.is_empty() => quoted = Some(line),
            (',', None, _) => fields.push(String::new()),
            ('\n', None, _) => {
                finish(&mut records, &mut fields, begins);
                begins = line;
            }
            ('\r', None, _) if characters.peek() == Some(&'\n') => {}
            (c, _, Some(field)) => field.push(c),
            (_, _, None) => {}
        }
    }
    if let Some(line) = quoted {
        return Err(line);
    }
    finish(&mut records, &mut fields, begins);
    Ok(records)
}

fn finish(records: &mut Vec<Record>, fields: &mut Vec<String>, line: usize) {
    let fields = std::mem::replace(fields, vec![String::new()]);
    let empty = fields.iter().all(|field| field.trim().is_empty());
    if !empty && !fields[0].starts_with("==") {
        records.push(Record { fields, line });
    }
}

/// A number as ncu prints it: with thousands separators, a fraction, an exponent; nothing for an empty field or a dash. A percent sign or another
/// unit behind it is left out.
///
/// Which of `.` and `,` separates thousands depends on the locale of the machine: the one that comes last is the decimal point if both occur;
/// one alone separates thousands if groups of three digits follow each.
pub(super) fn number(field: &str) -> Option<f64> {
    let text = field.trim().trim_end_matches('%').trim_end();
    let spaces = |c: char| !matches!(c, ' ' | '\u{a0}' | '\u{202f}' | '\'' | '’');
    let text: String = text.chars().filter(|&c| spaces(c)).collect();
    let point = match (text.rfind(','), text.rfind('.')) {
        (Some(comma), Some(dot)) => Some(comma.max(dot)),
        (Some(comma), None) if !in_thousands(&text, ',') => Some(comma),
        // A point alone is one, but for groups as in 1.048.576.
        (None, Some(dot)) if text.matches('.').count() == 1 || !in_thousands(&text, '.') => {
            Some(dot)
        }
        _ => None,
    };
    let mut plain = String::with_capacity(text.len());
    for (i, c) in text.char_indices() {
        match c {
            ',' | '.' if Some(i) == point => plain.push('.'),
            ',' | '.' => {}
            c => plain.push(c),
        }
    }
    plain.parse().ok().filter(|n: &f64| n.is_finite())
}

/// Whether every separator is followed by three digits.
fn in_thousands(text: &str, separator: char) -> bool {
    let mut groups = text.split(separator);
    let first = groups.next().unwrap_or_default().trim_start_matches('-');
    let digits = |group: &str| group.bytes().all(|b| b.is_ascii_digit());
    (1..=3).contains(&first.len())
        && digits(first)
        && groups.all(|group| group.len() == 3 && digits(group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_commas_and_lines_within_a_field_stay() {
        let text = "==PROF== Connected\n\"a\",\"f<int, 3>(\"\"x\"\")\"\r\n\n\"two\nlines\",1\n";
        let found = records(text).expect("records");
        assert_eq!(found[0].fields, ["a", "f<int, 3>(\"x\")"]);
        assert_eq!((found[0].line, found[1].line), (2, 4));
        assert_eq!(found[1].fields, ["two\nlines", "1"]);
        assert_eq!(records("a\n\"b"), Err(2));
    }

    #[test]
    fn numbers_have_separators_of_any_locale() {
        for (text, value) in [
            ("1,048,576", 1_048_576.0),
            ("1.048.576", 1_048_576.0),
            ("1 048 576", 1_048_576.0),
            ("32", 32.0),
            ("0.5", 0.5),
            ("1,234.5", 1234.5),
            ("1.234,5", 1234.5),
            ("0,25", 0.25),
            ("96.77%", 96.77),
            ("1e6", 1e6),
            ("1.250", 1.25),
        ] {
            assert_eq!(number(text), Some(value), "{text}");
        }
        for text in ["", "-", "n/a", "inf", "nan", "LDS"] {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
