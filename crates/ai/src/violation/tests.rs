use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

const OFFERED: [&str; 4] = ["Read", "Edit", "Bash", "mcp__files__list"];

/// The called tools, separated by blanks; empty when the text is no violation.
fn called(text: &str) -> String {
    find_violation(text, &OFFERED).map_or_else(String::new, |found| found.tools.join(" "))
}

/// Texts that are calls, and what they call.
const CALLS: &[(&str, &str)] = &[
    // XML elements.
    ("<invoke name=\"Read\">\n<parameter name=\"path\">a.txt</parameter>\n</invoke>", "Read"),
    ("I look.\n\n<invoke name=\"Read\">\n</invoke>", "Read"),
    ("I look: <invoke name=\"Read\"><parameter name=\"path\">a</parameter></invoke>", "Read"),
    (
        "I look.<invoke name=\"Read\"><parameter name=\"path\">a</parameter></invoke>\n\nDone.",
        "Read",
    ),
    ("我来读取：<invoke name=\"Read\"><parameter name=\"path\">a</parameter></invoke>", "Read"),
    ("<invoke name='Read'></invoke>", "Read"),
    ("<invoke name=Read></invoke>", "Read"),
    ("<invoke id=\"1\" name = \"Read\" />", "Read"),
    ("<invoke name=\"mcp__files__list\"/>", "mcp__files__list"),
    ("<invoke name=\"Bash\">ls -la</invoke>", "Bash"),
    ("<invoke name=\"Bash\">{\"command\": \"ls\"}</invoke>", "Bash"),
    (
        "<ns:invoke name=\"Read\">\n<ns:parameter name=\"path\">a</ns:parameter>\n</ns:invoke>",
        "Read",
    ),
    ("\r\n  <invoke name=\"Read\">\r\n    <path>a</path>\r\n  </invoke>\r\n", "Read"),
    (
        "<invoke name=\"Read\">\n<parameter name=\"path\">a</parameter>\n</invoke> The file says:",
        "Read",
    ),
    // Wrappers, with several calls and with none known.
    (
        "Both.\n<function_calls>\n<invoke name=\"Read\">\n<parameter name=\"path\">a</parameter>\n\
         </invoke>\n<invoke name=\"Bash\">\n</invoke>\n</function_calls>",
        "Read Bash",
    ),
    (
        "Yes. <function_calls><invoke name=\"Read\"></invoke><invoke name=\"Edit\"></invoke>\
         </function_calls>",
        "Read Edit",
    ),
    (
        "<function_calls>\n<invoke name=\"Fly\">\n</invoke>\n<invoke name=\"Read\">\n</invoke>\n\
         </function_calls>",
        "Read",
    ),
    ("<function_calls>\n\n    <invoke name=\"Read\">\n    </invoke>\n</function_calls>", "Read"),
    ("<function_calls>\n[{\"name\": \"Read\", \"arguments\": {}}]\n</function_calls>", "Read"),
    // What the arguments hold is no call, and what follows them is.
    (
        "<invoke name=\"Edit\">\n<parameter name=\"new_text\">\n<invoke name=\"Bash\">\n\
         </parameter>\n</invoke>\n<invoke name=\"Read\">\n</invoke>",
        "Edit Read",
    ),
    (
        "<invoke name=\"Edit\">\n<parameter name=\"new_text\">\n```\ncode\n```\n</parameter>\n</invoke>",
        "Edit",
    ),
    // Cut short.
    ("<invoke name=\"Read\">", "Read"),
    ("<invoke name=\"Read\"", "Read"),
    ("I look.\n<function_calls>\n<invoke name=\"Read\">\n", "Read"),
    ("<invoke name=\"Read\">\n<parameter name=\"path\">src/ma", "Read"),
    ("<invoke name=\"Read\">\n<", "Read"),
    ("I look. <invoke name=\"Read\"><parameter name=\"path\">src/ma", "Read"),
    ("<tool_call>\n{\"name\": \"Read\", \"arguments\": {\"path\": \"a", "Read"),
    ("<tool_call>{\"name\": \"Read", "Read"),
    // JSON in tags.
    ("<tool_call>\n{\"name\": \"Read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>", "Read"),
    ("<tool_call>{\"arguments\": {\"name\": \"Bash\"}, \"name\": \"Read\"}</tool_call>", "Read"),
    ("I look. <tool_call>{\"name\": \"Read\"}</tool_call>", "Read"),
    ("<tool_call>{\"function\": {\"name\": \"Read\", \"arguments\": \"{}\"}}</tool_call>", "Read"),
    ("<tool_call>{\"tool\": \"Read\"}</tool_call>", "Read"),
    ("<tool_calls>[{\"name\":\"Read\"},{\"name\":\"Edit\"}]</tool_calls>", "Read Edit"),
    (
        "<tool_call>\n{\"name\":\"Read\"}\n</tool_call>\n<tool_call>\n{\"name\":\"Bash\"}\n</tool_call>",
        "Read Bash",
    ),
    ("<tool_call>{\"name\": \"functions.Read\"}</tool_call>", "Read"),
    ("<tool_call name=\"Read\">\n{\"path\": \"a\"}\n</tool_call>", "Read"),
    // The name in the tag, or bare.
    (
        "<tool_call>\n<function=Read>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>",
        "Read",
    ),
    ("<function=Read>{\"path\": \"a\"}</function>", "Read"),
    ("<function=Read></function>", "Read"),
    ("<function name=\"Read\">\n<parameter name=\"path\">a</parameter>\n</function>", "Read"),
    ("<tool_call>Read\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>", "Read"),
    ("<tool_call>Read</tool_call>", "Read"),
    // Words in bars.
    (
        "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"Read\">\n<｜DSML｜parameter name=\"path\" \
         string=\"true\">a</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
        "Read",
    ),
    ("<|DSML|invoke name=\"Read\"></|DSML|invoke>", "Read"),
    (
        "I look<|tool_calls_section_begin|><|tool_call_begin|>functions.Read:0\
         <|tool_call_argument_begin|>{\"path\": \"a\"}<|tool_call_end|><|tool_call_begin|>\
         functions.Bash:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
        "Read Bash",
    ),
    ("<|tool_call_begin|>functions.Read:0", "Read"),
    (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>Read\n```json\n{}\n```\
         <｜tool▁call▁end｜>",
        "Read",
    ),
    (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>Read<｜tool▁sep｜>{\"path\": \"a\"}\
         <｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        "Read",
    ),
    ("<|tool_call|>[{\"name\": \"Read\", \"arguments\": {}}]", "Read"),
    ("[TOOL_CALLS][{\"name\": \"Read\", \"arguments\": {}}, {\"name\": \"Bash\"}]", "Read Bash"),
    ("[TOOL_CALLS] [{\"name\": \"Read\", \"argu", "Read"),
    ("[TOOL_CALLS]Read[ARGS]{\"path\": \"a\"}", "Read"),
    ("[TOOL_CALLS]Read{\"path\": \"a\"}", "Read"),
    // Code elsewhere in the text changes nothing.
    ("It is `code`, and:\n```\nmore\n```\n<invoke name=\"Read\">\n</invoke>", "Read"),
    ("A stray ` and\n\n<invoke name=\"Read\">\n</invoke>\n\nanother `.", "Read"),
    ("~~~\n```\n~~~\n<invoke name=\"Read\">\n</invoke>", "Read"),
    (
        "<invoke name=\"Bash\">\n<parameter name=\"command\">echo `date`</parameter>\n</invoke>",
        "Bash",
    ),
];

/// SPEC M18
#[test]
fn a_call_written_as_text_is_found() {
    for (text, tools) in CALLS {
        assert_eq!(called(text), *tools, "{text}");
    }
}

/// SPEC M18: shown, talked about, of no offered tool, or no call at all.
#[test]
fn text_about_calls_is_left_alone() {
    let texts = [
        "",
        "Nothing to do.",
        // Not offered, exactly.
        "<invoke name=\"Fly\">\n</invoke>",
        "<invoke name=\"read\">\n</invoke>",
        "<invoke name=\"Rea",
        "<invoke name=\"\"></invoke>",
        "<invoke></invoke>",
        "<tool_call>{\"name\": \"Fly\"}</tool_call>",
        "<tool_call>{\"arguments\": {\"name\": \"Read\"}}</tool_call>",
        "<tool_call></tool_call>",
        "<function_calls>\n</function_calls>",
        // Fences of every kind.
        "```\n<invoke name=\"Read\">\n</invoke>\n```",
        "```xml\n<function_calls>\n<invoke name=\"Read\">\n</invoke>\n</function_calls>\n```\nSo.",
        "~~~\n<invoke name=\"Read\">\n</invoke>\n~~~",
        "````\n```\n<invoke name=\"Read\">\n</invoke>\n```\n````",
        "  ```\n  <invoke name=\"Read\">\n  </invoke>\n  ```",
        "1. So:\n\n   ```\n   <invoke name=\"Read\">\n   </invoke>\n   ```",
        "- ```\n  <invoke name=\"Read\">\n  </invoke>\n  ```",
        "So:```xml\n<invoke name=\"Read\">\n</invoke>\n```",
        "```\n<invoke name=\"Read\">\n</invoke>",
        "```\n~~~\n<invoke name=\"Read\">\n</invoke>\n~~~",
        "~~~ a`b\n<tool_call>{\"name\": \"Read\"}</tool_call>",
        "```\r\n<invoke name=\"Read\">\r\n</invoke>\r\n```\r\n",
        "```\n[TOOL_CALLS][{\"name\": \"Read\"}]\n```",
        // Spans.
        "`<invoke name=\"Read\">`",
        "`<invoke name=\"Read\"></invoke>`",
        "``<tool_call>{\"name\": \"`Read`\"}</tool_call> <invoke name=\"Read\"/>``",
        "A call is `<invoke name=\"Read\">\n</invoke>`, you see.",
        "`<|tool_call_begin|>functions.Read:0`",
        // Indented code and quotes.
        "It reads:\n\n    <invoke name=\"Read\">\n    </invoke>\n\nThat is all.",
        "> <invoke name=\"Read\">\n> </invoke>",
        // Mentioned.
        "use the <invoke name=\"Read\"> tag",
        "Use the <invoke name=\"Read\"> tag, then </invoke>.",
        "To read, write <invoke name=\"Read\"></invoke> and wait.",
        "A call looks like this: <invoke name=\"Read\"></invoke>.",
        "The tag is <invoke name=\"Read\">",
        "The tag is: <invoke name=\"Read\">",
        "<invoke name=\"Read\"> is the tag that reads.",
        "<invoke name=\"Read\"></invoke> is how to read.",
        "Between <function_calls> and <invoke name=\"Read\"> nothing stands.",
        "the <function_calls><invoke name=\"Read\"></invoke></function_calls>",
        "Write (<invoke name=\"Read\"></invoke>)",
        "Write \"<invoke name=\"Read\"></invoke>\"",
        "| <invoke name=\"Read\"></invoke> | reads |",
        "Forms:\n- <invoke name=\"Read\"></invoke>\n2. <tool_call>{\"name\": \"Read\"}</tool_call>",
        "The tag\n<invoke name=\"Read\">\nopens a call.",
        "**<invoke name=\"Read\"></invoke>**",
        "<code><invoke name=\"Read\"></code>",
        "The model writes <tool_call>{\"name\": \"Read\"}</tool_call> here.",
        "<tool_call>{\"name\": \"Read\"}</tool_call> is Hermes' form.",
        "<tool_call> is what surrounds {\"name\": \"Read\"}.",
        "<tool_call> Read is called by this.",
        "Mistral says [TOOL_CALLS] Read and so on.",
        "Kimi writes <|tool_call_begin|>functions.Read:0 for it.",
        // Other markup.
        "&lt;invoke name=\"Read\"&gt;&lt;/invoke&gt;",
        "<Read>\n</Read>",
        "<invoker name=\"Read\">\n</invoker>",
        "<invoke filename=\"Read\">\n</invoke>",
        "{\"name\": \"Read\", \"arguments\": {}}",
        "fn invoke<Read>() -> Vec<function> { [tool_call] }",
        "a < b, b > c, [Read](x), <|end|>",
    ];
    for text in texts {
        assert_eq!(called(text), "", "{text}");
    }
}

/// SPEC M18: no tools, no violation.
#[test]
fn without_tools_nothing_is_a_call() {
    assert_eq!(find_violation(CALLS[0].0, &[]), None);
}

/// What is named is bounded.
#[test]
fn no_more_calls_are_named_than_help() {
    let text = "<invoke name=\"Read\"></invoke>\n".repeat(MAX_CALLS + 10);
    assert_eq!(find_violation(&text, &OFFERED).map(|found| found.tools.len()), Some(MAX_CALLS));
}

/// Every step is linear: what would take hours otherwise takes less than this in a debug build.
#[test]
fn a_hostile_text_costs_what_it_is_long() {
    const LONG: usize = 1 << 18;
    const PATIENCE: Duration = Duration::from_secs(10);
    let pieces = [
        "[",
        "`",
        "`` ` ```x ",
        "\n```\n",
        "> ",
        "<invoke name=\"Read\"> ",
        "<invoke name=\"Read\">x",
        "</invoke>",
        "<invoke name=",
        "<function_calls> ",
        "<tool_call>{\"",
        "<tool_call>{\"a\":[",
        "<tool_call>{\"a\":\"\\",
        "<tool_call>Read\n",
        "{\"name\":",
        "<|",
        "<|tool_call_begin|>",
        "<|tool_call_begin|>Read ",
        "[TOOL_CALLS]",
        "[TOOL_CALLS][[{",
        "<｜DSML｜",
        "<a:",
        "<invoke name=\"Fly\"></invoke>",
        "<invoke\n",
        " \n    <tool_call>",
    ];
    let texts = pieces.map(|piece| piece.repeat(LONG / piece.len()));
    let ten_megabytes = "<".repeat(10 << 20);
    for text in texts.iter().chain([&ten_megabytes]) {
        let begun = Instant::now();
        let found = find_violation(text, &OFFERED);
        let beginning: String = text.chars().take(20).collect();
        assert!(begun.elapsed() < PATIENCE, "{beginning} {found:?}");
    }
}

proptest! {
    /// SPEC M18: no text is a call that has none of the marks.
    #[test]
    fn text_without_marks_is_no_violation(text in "[^<\\[]{0,200}") {
        prop_assert_eq!(called(&text), "");
    }

    /// Any text at all, made of what marks are made of, is read without a panic.
    #[test]
    fn any_text_is_read(
        pieces in prop::collection::vec(prop_oneof![
            prop::sample::select(vec![
                "<", ">", "/", "\"", "`", "```", "~~~", "\n", "    ", "> ", "- ", "<invoke name=\"Read\">",
                "</invoke>", "<tool_call>", "{\"name\":\"Read\"}", "{\"", "\\", "[TOOL_CALLS]", "[ARGS]",
                "<|tool_call_begin|>", "｜", "▁", "<｜tool▁sep｜>", "functions.", ":0", "Read", "<function=",
                "name=", "é", "\u{3000}",
            ]).prop_map(str::to_owned),
            any::<char>().prop_map(String::from),
        ], 0..40)
    ) {
        let text = pieces.concat();
        if let Some(found) = find_violation(&text, &OFFERED) {
            prop_assert_eq!(found.tools.iter().filter(|name| *name != "Read").count(), 0);
        }
    }

    /// SPEC M18: whatever is a call is none within a fence that it does not close, and is one
    /// behind such a fence.
    #[test]
    fn a_fenced_call_is_no_violation(
        call in prop::sample::select(CALLS),
        fence in prop::sample::select(vec!["`````", "~~~~~", "``````````"]),
        language in "[a-z]{0,5}",
        indent in " {0,3}",
        before in "[a-z .]{0,20}",
        closed in any::<bool>(),
    ) {
        let (text, tools) = call;
        let end = if closed { fence } else { "" };
        let fenced = format!("{before}\n{indent}{fence}{language}\n{text}\n{end}");
        prop_assert_eq!(called(&fenced), "");
        let behind = format!("{before}\n{indent}{fence}{language}\nx\n{fence}\n{text}");
        prop_assert_eq!(called(&behind), tools);
    }
}
