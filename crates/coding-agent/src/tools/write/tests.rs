use serde_json::json;

use super::*;
use crate::tools::fixture::Fixture;

/// SPEC F5, F6
#[tokio::test]
async fn a_file_is_created_and_overwritten() {
    let fixture = Fixture::new();
    let arguments = json!({"path": "new/deep/a.txt", "content": "one\ntwo\n"});
    let output = fixture.run(Write, arguments).await;
    assert_eq!(output.content_text(), "created new/deep/a.txt: 2 lines, 8 bytes");
    assert_eq!(fixture.content("new/deep/a.txt"), b"one\ntwo\n");
    assert_eq!(output.details["before"], serde_json::Value::Null);
    let after = output.details["after"].clone();

    let arguments = json!({"path": "new/deep/a.txt", "content": "one\n2"});
    let output = fixture.run(Write, arguments).await;
    assert_eq!(output.content_text(), "overwrote new/deep/a.txt: 2 lines, 5 bytes");
    assert_eq!(output.details["before"], after);
    assert_eq!(
        (output.details["added"].clone(), output.details["removed"].clone()),
        (json!(1), json!(1))
    );
    assert_eq!(fixture.names(Path::new("new/deep")), ["a.txt"]);
}

/// SPEC F2
#[tokio::test]
async fn the_target_of_a_link_is_written() {
    let fixture = Fixture::new();
    let target = fixture.file("target", "old");
    std::os::unix::fs::symlink(&target, fixture.path("link")).unwrap();
    std::os::unix::fs::symlink("later", fixture.path("dangling")).unwrap();
    for path in ["link", "dangling"] {
        let output = fixture.run(Write, json!({"path": path, "content": "new"})).await;
        assert!(!output.is_error, "{output:?}");
        assert!(fixture.path(path).symlink_metadata().unwrap().is_symlink());
    }
    assert_eq!(fixture.content("target"), b"new");
    assert_eq!(fixture.content("later"), b"new");
}

/// SPEC F5
#[tokio::test]
async fn what_cannot_be_written_is_said_and_leaves_nothing() {
    let fixture = Fixture::new();
    fixture.file("directory/a", "");
    let long = "x".repeat(300);
    let cases = [
        ("directory".to_owned(), "cannot write directory: it is a directory".to_owned()),
        (
            "directory/".to_owned(),
            "directory/ is a directory's name: name the file in it".to_owned(),
        ),
        (
            "/dev/null".to_owned(),
            "cannot write /dev/null: it is a device, FIFO or socket, not a file".to_owned(),
        ),
    ];
    for (path, expected) in cases {
        let output = fixture.run(Write, json!({"path": path, "content": "x"})).await;
        assert_eq!((output.content_text(), output.is_error), (expected, true));
    }
    // Directories that were made for a file that could not be are taken away again.
    let path = ResolvedPath {
        path: fixture.path("fresh/deep").join(&long),
        links: Vec::new(),
        root: None,
        shown: "fresh/deep/xxx".to_owned(),
    };
    let directories = Directories::create(path.path.parent().unwrap()).unwrap();
    atomic_write::write(&path.path, b"x").unwrap_err();
    drop(directories);
    assert_eq!(fixture.names(Path::new("")), ["directory"]);
}
