//! The built-in tools: Read, Edit, Write and Bash.
//!
//! Each reaches the world only through the call's [`crate::Grant`]. None of them asks for
//! permission, writes a log, or knows in which order layers stand around it.

mod atomic_write;
mod bash;
mod blocking;
mod edit;
mod near_names;
mod read;
mod receipt;
mod regular_file;
mod write;

pub use self::bash::{Bash, BashArguments, BashSettings, Processes};
pub use self::edit::{Edit, EditArguments, Replacement};
pub use self::read::{Read, ReadArguments};
pub use self::write::{Write, WriteArguments};

#[cfg(test)]
mod fixture;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use agent::{Effect, Effects, ExecutionMode, OfferedTool};
    use serde_json::{Map, Value, json};

    use super::*;

    fn tools() -> [OfferedTool; 4] {
        let bash = Bash::new(Path::new("/"), BashSettings::default(), Processes::default());
        [
            OfferedTool::new(Read).unwrap(),
            OfferedTool::new(Edit).unwrap(),
            OfferedTool::new(Write).unwrap(),
            OfferedTool::new(bash).unwrap(),
        ]
    }

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn what_the_model_reads_of_them_is_short() {
        let specs: Vec<_> = tools().iter().map(|tool| tool.spec().clone()).collect();
        let json = serde_json::to_string(&specs).unwrap();
        assert!(json.len() < 4 * 1024, "{} bytes: {json}", json.len());
    }

    /// SPEC M19
    #[test]
    fn names_of_other_agents_tools_are_understood() {
        for (old, new) in [
            ("old_string", "new_string"),
            ("oldString", "newString"),
            ("old_str", "new_str"),
            ("oldText", "newText"),
        ] {
            let mut arguments = object(json!({
                "file_path": "a.txt", "edits": [{old: "one", new: "three"}]
            }));
            let edit = OfferedTool::new(Edit).unwrap();
            let mut notes = edit.validator().validate(&mut arguments).unwrap();
            notes.sort_unstable();
            let mut expected = [
                format!("`/edits/0/{new}` was taken as `new_text`"),
                format!("`/edits/0/{old}` was taken as `old_text`"),
                "`/file_path` was taken as `path`".to_owned(),
            ];
            expected.sort_unstable();
            assert_eq!(notes, expected);
            let edits = json!([{"old_text": "one", "new_text": "three"}]);
            assert_eq!((&arguments["path"], &arguments["edits"]), (&json!("a.txt"), &edits));
        }
    }

    /// SPEC T1
    #[test]
    fn each_declares_what_it_does() {
        let bash = ["bash", "-c", "ls"].map(str::to_owned).to_vec();
        let expected = [
            (json!({"path": "a"}), ExecutionMode::Parallel, vec![Effect::read("a")], "Read a"),
            (
                json!({"path": "a", "edits": []}),
                ExecutionMode::Exclusive,
                vec![Effect::read("a"), Effect::write("a")],
                "Edit a",
            ),
            (
                json!({"path": "a", "content": ""}),
                ExecutionMode::Exclusive,
                vec![Effect::write("a")],
                "Write a",
            ),
            (
                json!({"command": "ls"}),
                ExecutionMode::Exclusive,
                vec![Effect::execute(bash)],
                "Bash ls",
            ),
        ];
        for (tool, (arguments, mode, effects, title)) in tools().iter().zip(expected) {
            let arguments = object(arguments);
            assert_eq!(tool.execution_mode(&arguments), mode);
            assert_eq!(tool.effects(&arguments), Effects::Declared(effects));
            assert_eq!(tool.title(&arguments), title);
        }
    }
}
