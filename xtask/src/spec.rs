//! `cargo xtask spec`: which behaviours of `docs/behaviours.md` have no test.
//!
//! A behaviour is a list item `- **M4** …`. A test names those that it checks in a doc comment of
//! its own, `SPEC M4, L3`, which may go on with words after a colon. Knows nothing of what a
//! behaviour says.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;

use anyhow::{Context, Result, bail};

use crate::workspace;

/// The project's list of behaviours, from the root.
const BEHAVIOURS: &str = "docs/behaviours.md";

/// A behaviour's number, such as `M4`. Ordered by its group's letter, then by the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Number {
    group: char,
    number: u32,
}

impl Number {
    /// Reads exactly `LETTER DIGITS`, without a leading zero.
    fn parse(text: &str) -> Option<Self> {
        let mut characters = text.chars();
        let group = characters.next().filter(char::is_ascii_uppercase)?;
        let digits = characters.as_str();
        let plain = digits.starts_with(|c: char| ('1'..='9').contains(&c))
            && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = if plain { digits.parse().ok()? } else { return None };
        Some(Self { group, number })
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.group, self.number)
    }
}

/// A `SPEC` line in a source.
#[derive(Debug, PartialEq, Eq)]
struct Mark {
    /// From 1.
    line: usize,
    numbers: Vec<Number>,
    /// What could not be read as a number.
    unreadable: Option<String>,
    /// Whether the item below is a test.
    above_test: bool,
}

/// Prints the counts of each group and what has no test. With `--check`, a mark that names nothing
/// fails; a behaviour without a test never does.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let check = match args {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => bail!("spec takes only --check"),
    };
    let root = workspace::root()?;
    let path = root.join(BEHAVIOURS);
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let listed = behaviours(&text)?;

    let mut tests: BTreeMap<Number, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for path in workspace::rust_files(&root)? {
        let shown = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        let source = fs::read_to_string(&path).with_context(|| format!("cannot read {shown}"))?;
        for mark in marks(&source) {
            let place = format!("{shown}:{}", mark.line);
            if let Some(text) = &mark.unreadable {
                wrong.push(format!("{place}: `{text}` is not a behaviour's number"));
            }
            if !mark.above_test {
                wrong.push(format!("{place}: no test follows"));
                continue;
            }
            for number in mark.numbers {
                if listed.contains(&number) {
                    *tests.entry(number).or_default() += 1;
                } else {
                    wrong.push(format!("{place}: {number} is not in {BEHAVIOURS}"));
                }
            }
        }
    }

    print!("{}", report(&listed, &tests));
    for problem in &wrong {
        println!("{problem}");
    }
    if check && !wrong.is_empty() {
        bail!("{} marks that name nothing", wrong.len());
    }
    Ok(())
}

/// The numbers of the list. A number that stands twice is an error, and so is a list with none.
fn behaviours(text: &str) -> Result<BTreeSet<Number>> {
    let mut listed = BTreeSet::new();
    for line in text.lines() {
        let number = line
            .strip_prefix("- **")
            .and_then(|rest| rest.split_once("**"))
            .and_then(|(number, _)| Number::parse(number));
        if let Some(number) = number
            && !listed.insert(number)
        {
            bail!("{number} stands twice in {BEHAVIOURS}");
        }
    }
    if listed.is_empty() {
        bail!("no item like `- **M1** …` in {BEHAVIOURS}");
    }
    Ok(listed)
}

/// The `SPEC` lines of a source, in order.
fn marks(source: &str) -> Vec<Mark> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let mut found = Vec::new();
    for (position, line) in lines.iter().enumerate() {
        let Some(text) = line.strip_prefix("/// SPEC ") else { continue };
        let (numbers, unreadable) = numbers(text);
        let above_test = lines[position + 1..]
            .iter()
            .take_while(|line| !is_item(line))
            .any(|line| line.starts_with("#[") && line.contains("test"));
        found.push(Mark { line: position + 1, numbers, unreadable, above_test });
    }
    found
}

/// Whether a line begins what a doc comment is about, instead of going on with comments or
/// attributes.
fn is_item(line: &str) -> bool {
    [
        "fn ",
        "async fn ",
        "pub ",
        "mod ",
        "struct ",
        "enum ",
        "const ",
        "static ",
        "impl ",
        "let ",
        "}",
    ]
    .iter()
    .any(|start| line.starts_with(start))
}

/// Numbers separated by commas, and the first thing among them that is none. Words after a colon
/// or a full stop are for the reader.
fn numbers(text: &str) -> (Vec<Number>, Option<String>) {
    let list = text.split([':', '.', ';']).next().unwrap_or_default();
    let mut numbers = Vec::new();
    for word in list.split(',').map(str::trim) {
        match Number::parse(word) {
            Some(number) => numbers.push(number),
            None => return (numbers, Some(word.to_owned())),
        }
    }
    (numbers, None)
}

/// One line a group, and a total.
fn report(listed: &BTreeSet<Number>, tests: &BTreeMap<Number, usize>) -> String {
    let mut groups: BTreeMap<char, Vec<Number>> = BTreeMap::new();
    for &number in listed {
        groups.entry(number.group).or_default().push(number);
    }
    let mut text = String::new();
    for (group, numbers) in &groups {
        let missing: Vec<String> = numbers
            .iter()
            .filter(|number| !tests.contains_key(number))
            .map(ToString::to_string)
            .collect();
        let tested = numbers.len() - missing.len();
        let missing = match missing.as_slice() {
            [] => String::new(),
            missing => format!("   no test: {}", missing.join(" ")),
        };
        text += &format!("{group} {tested:>3} of {:>2}{missing}\n", numbers.len());
    }
    let marks: usize = tests.values().sum();
    text += &format!("{} of {} behaviours have a test; {marks} marks\n", tests.len(), listed.len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        Number::parse(text).unwrap()
    }

    fn list(text: &str) -> Vec<Number> {
        text.split_whitespace().map(number).collect()
    }

    #[test]
    fn a_number_is_a_letter_and_digits() {
        for text in ["M1", "L17", "I12"] {
            assert_eq!(number(text).to_string(), text);
        }
        for text in ["", "M", "m1", "M01", "M0", "M1a", "MM1", "M+1", "1", "É1"] {
            assert_eq!(Number::parse(text), None, "{text}");
        }
    }

    #[test]
    fn behaviours_are_the_bold_list_items() {
        let text = "# M9\n\n- **M2** two\n- **M10** ten\n- **bold** words, M3\n- M4 plain\n";
        let listed: Vec<_> = behaviours(text).unwrap().into_iter().collect();
        assert_eq!(listed, list("M2 M10"));
        assert_eq!(
            behaviours("- **M2** a\n- **M2** b\n").unwrap_err().to_string(),
            "M2 stands twice in docs/behaviours.md"
        );
        assert!(behaviours("nothing").is_err());
    }

    #[test]
    fn a_mark_holds_numbers_and_then_words() {
        for (text, expected, unreadable) in [
            ("M4", "M4", None),
            ("L1, L3", "L1 L3", None),
            ("L1,L3: two reads, one edit", "L1 L3", None),
            ("M4. Whatever follows", "M4", None),
            ("M4, soon", "M4", Some("soon")),
            ("M1-M3", "", Some("M1-M3")),
            ("M4 and more", "", Some("M4 and more")),
        ] {
            let expected = (list(expected), unreadable.map(str::to_owned));
            assert_eq!(numbers(text), expected, "{text}");
        }
    }

    #[test]
    fn a_mark_counts_only_above_a_test() {
        let mark = |line, numbers, above_test| Mark {
            line,
            numbers: list(numbers),
            unreadable: None,
            above_test,
        };
        let source = "/// SPEC M1\n#[test]\nfn a() {}\n\n    /// SPEC M2, M3\n    /// More.\n    \
                      #[tokio::test(start_paused = true)]\n    async fn b() {}\n/// SPEC M4\nfn c() {}\n\
                      #[test]\nfn d() {}\n/// Checks it (SPEC M5).\n#[test]\nfn e() {}\n";
        let expected = [mark(1, "M1", true), mark(5, "M2 M3", true), mark(9, "M4", false)];
        assert_eq!(marks(source), expected);
    }

    #[test]
    fn the_report_counts_each_group_and_names_what_is_missing() {
        let listed = list("M1 M2 L1").into_iter().collect();
        let tests = BTreeMap::from([(number("M2"), 2), (number("L1"), 1)]);
        let expected = "L   1 of  1\nM   1 of  2   no test: M1\n\
                        2 of 3 behaviours have a test; 3 marks\n";
        assert_eq!(report(&listed, &tests), expected);
    }
}
