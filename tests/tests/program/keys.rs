//! `login`, `logout` and key commands. Every run is looked through for the key, as everywhere.

use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use ai::Api;
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};
use scripted_model::{Fault, Script, ScriptedModel, Turn};
use serde_json::{Value, json};
use tests::bench::Bench;
use tests::program::{Ended, Input, KEY};

fn key_file(bench: &Bench) -> PathBuf {
    bench.agent_home().join("config/credentials.toml")
}

fn mode(path: PathBuf) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

/// What was said, with the place replaced.
fn said(bench: &Bench, ended: &Ended) -> (i32, String, String) {
    let plain = |text: &str| text.replace(bench.root().to_str().unwrap(), "PLACE");
    (ended.code, plain(&ended.stdout), plain(&ended.stderr))
}

async fn login(bench: &Bench, provider: &str) {
    let ended = bench.program(["login", provider]).piped(format!("{KEY}\n")).run().await;
    assert_eq!(ended.code, 0, "{ended:?}");
}

async fn answering(answers: &[&str]) -> ScriptedModel {
    let script = answers
        .iter()
        .fold(Script::new("scripted"), |script, answer| script.turn(Turn::text_only(*answer)));
    ScriptedModel::start(script).await.unwrap()
}

/// SPEC M20: from the pipe into the file into the request, and never onto an output.
#[tokio::test]
async fn what_login_stored_is_asked_with_and_shown_nowhere() {
    let bench = Bench::new();
    let ended = bench.program(["login", "openai"]).piped(format!(" {KEY}\r\n")).run().await;
    let path = "PLACE/agent/config/credentials.toml";
    let stored = format!("stored the key of openai in {path}\n");
    assert_eq!(said(&bench, &ended), (0, stored, String::new()));
    assert_eq!(mode(key_file(&bench)), 0o600);
    assert_eq!(mode(bench.agent_home().join("config")), 0o700);

    // Both of its names share the account.
    for (provider, api) in [("openai", Api::OpenaiChat), ("openai-responses", Api::OpenaiResponses)]
    {
        let script = Script::new("scripted")
            .turn(Turn::new().call(
                "Bash",
                json!({"command": "env; tr '\\0' '\\n' </proc/$PPID/environ; exit 0"}),
            ))
            .turn(Turn::text_only("Here."));
        let model = ScriptedModel::start(script).await.unwrap();
        let ended = bench
            .program(["-p", "hello", "--model", &format!("{provider}/m")])
            .arguments(["--permission-mode", "bypass", "--output-format", "stream-json"])
            .checked_by(&model)
            .variable("OPENAI_BASE_URL", model.base_url(api))
            .variable("CODING_AGENT_LOG", "trace")
            .run()
            .await;
        assert_eq!(ended.code, 0, "{ended:?}");
        // The command ran, and neither it nor the program had the key in the environment.
        assert!(ended.stdout.contains("CODING_AGENT_HOME="), "{ended:?}");
        assert!(model.requests()[0].header("authorization").unwrap().ends_with(KEY));
    }

    for arguments in [
        &["doctor"][..],
        &["models"],
        &["config", "show"],
        &["login", "--help"],
        &["login", "nobody"],
        &["logout", "anthropic"],
        &["tool", "run", "Read", "--args", "{\"path\": \"../agent/config/credentials.toml\"}"],
        &["-p", "x", "--model", "nobody/x"],
    ] {
        let program = bench.program(arguments).variable("CODING_AGENT_LOG", "trace");
        let ended = program.variable("RUST_LOG", "trace").run().await;
        assert!([0, 1, 2, 3].contains(&ended.code), "{ended:?}");
    }
    let shown = bench.program(["doctor"]).run().await.stdout;
    assert!(shown.contains("keys         openai: key from credentials.toml\n"), "{shown}");

    let ended = bench.program(["login", "openai"]).piped(KEY).run().await;
    let replaced = format!("stored the key of openai in {path}, in place of what was there\n");
    assert_eq!(said(&bench, &ended), (0, replaced, String::new()));
    for (provider, text) in [
        ("openai", "removed what was stored for openai from"),
        ("openai", "there was no key of openai in"),
        ("mistral", "there was no key of mistral in"),
    ] {
        let ended = bench.program(["logout", provider]).run().await;
        assert_eq!(said(&bench, &ended), (0, format!("{text} {path}\n"), String::new()));
    }
    assert!(!fs::read_to_string(key_file(&bench)).unwrap().contains(KEY));
}

/// SPEC M20: what has no place on the command line is not said again, since it may be the key.
#[tokio::test]
async fn a_key_on_the_command_line_is_refused() {
    let bench = Bench::new();
    for arguments in [
        &["login", "openai", KEY][..],
        &["login", "openai", "--key", KEY],
        &["login", "openai", &format!("--api-key={KEY}")],
        &["login", "openai", "-k", KEY, "--key-command", "true"],
        &["login", KEY],
        &["login", KEY, "openai"],
        &["logout", KEY],
        &["logout", "openai", KEY],
    ] {
        let ended = bench.program(arguments).piped("other-key-0123456789").run().await;
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{ended:?}");
        assert!(ended.stderr.contains("\nhint: "), "{ended:?}");
    }
    assert_eq!(bench.names(bench.agent_home().join("config")), [] as [&str; 0]);
}

/// SPEC U4
#[tokio::test]
async fn what_is_no_key_or_no_provider_is_said() {
    let bench = Bench::new();
    let empty = "error: what was given is no key: it is empty\nhint: pipe it in (`coding-agent login \
                 openai <FILE`), or type it at a terminal\n";
    let alone = "hint: give the key alone, without a name, quotes or a scheme before it\n";
    let characters = format!(
        "error: what was given is no key: it holds white space or characters that no key has\n{alone}"
    );
    let long = format!("error: what was given is no key: it is longer than 16 KiB\n{alone}");
    for (input, expected) in [
        (Input::Null, empty),
        (Input::Closed, empty),
        (Input::Bytes(b" \n".to_vec()), empty),
        (Input::Bytes(format!("Bearer {KEY}").into_bytes()), &characters),
        (Input::Bytes(format!("{KEY}\n{KEY}\n").into_bytes()), &characters),
        (Input::Bytes(b"sk-\xff\xfe".to_vec()), &characters),
        (Input::Bytes(KEY.repeat(10_000).into_bytes()), &long),
    ] {
        let ended = bench.program(["login", "openai"]).input(input).run().await;
        assert_eq!(ended.all(), (2, "", expected));
    }
    bench.configure("[providers.mine]\napi = 'openai-chat'\nbase_url = 'http://127.0.0.1:1'\n");
    for command in ["login", "logout"] {
        let ended = bench.program([command, "nobody"]).piped(KEY).run().await;
        let (first, hint) = ended.stderr.split_once('\n').unwrap();
        assert_eq!((ended.code, first), (2, "error: unknown provider `nobody`"));
        for name in ["anthropic", "openai", "azure", "mine"] {
            assert!(hint.contains(name), "{hint}");
        }
        let ended = bench.program([command, "scripted"]).piped(KEY).run().await;
        assert_eq!(ended.code, 2, "{ended:?}");
    }
    let ended = bench.program(["login", "openai", "--key-command", " "]).run().await;
    assert!(ended.stderr.starts_with("error: the key command is empty\n"), "{ended:?}");
    assert!(!key_file(&bench).exists());
}

/// SPEC M20: a key in the place of a variable's name is refused without being said.
#[tokio::test]
async fn a_key_where_a_variable_belongs_is_not_shown() {
    for key in ["sk-ant-12345678901234567890", "gsk_abcdef1234567890abcdef", "a b"] {
        let bench = Bench::new();
        bench.configure(&format!("[providers.mine]\nkey_env = '{key}'\n"));
        for arguments in [&["models"][..], &["config", "show"], &["-p", "x", "--model", "mine/m"]] {
            let ended = bench.program(arguments).run().await;
            assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{ended:?}");
            assert!(ended.stderr.contains("must be the name of a variable"), "{ended:?}");
            assert!(!ended.stderr.contains(key), "{ended:?}");
        }
    }
    let bench = Bench::new();
    bench.configure("[providers.mine]\nkey_env = 'AZURE_OPENAI_API_KEY_2'\n");
    assert_eq!(bench.program(["config", "show"]).run().await.code, 0);
}

/// What is stored for a provider can be removed when the configuration does not have it any more.
#[tokio::test]
async fn logout_needs_no_provider() {
    let bench = Bench::new();
    bench.configure("[providers.mine]\napi = 'openai-chat'\nbase_url = 'http://127.0.0.1:1'\n");
    login(&bench, "mine").await;
    bench.configure("");
    let ended = bench.program(["logout", "mine"]).run().await;
    assert!(ended.stdout.starts_with("removed what was stored for mine from"), "{ended:?}");
    assert!(!fs::read_to_string(key_file(&bench)).unwrap().contains(KEY));
    assert_eq!(bench.program(["logout", "mine"]).run().await.code, 2);
}

/// A key that is typed is not seen, and the terminal is given back, also by a signal.
#[tokio::test]
async fn a_key_that_is_typed_is_not_shown() {
    for (typed, signal, code) in [
        (format!("{KEY}\n"), None, 0),
        ("\n".to_owned(), None, 2),
        // More than a terminal's line holds: the rest would be lost, and half a key stored.
        (format!("{}\n", "k".repeat(5000)), None, 2),
        // Nothing typed: the kernel may hand on what was at any time later, also to the shell.
        (String::new(), Some(Signal::INT), 130),
        (String::new(), Some(Signal::TERM), 143),
    ] {
        let bench = Bench::new();
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
        let before = tcgetattr(&terminal).unwrap();
        assert!(before.local_modes.contains(LocalModes::ECHO));
        // Held so that the terminal stays one when the program has ended.
        let kept = File::options().read(true).write(true).open(&name).unwrap();
        let mut terminal = File::from(terminal);
        let mut running =
            bench.program(["login", "openai"]).input(Input::File(name.into())).start();
        running.wait_for_error_text("key of openai (not shown): ").await;
        terminal.write_all(typed.as_bytes()).unwrap();
        if let Some(signal) = signal {
            running.signal(signal);
        }
        let ended = running.end().await;
        assert_eq!(ended.code, code, "{ended:?}");
        let after = tcgetattr(&terminal).unwrap();
        assert_eq!(after.local_modes, before.local_modes, "{signal:?}");
        drop(kept);
        // Nobody holds the other end any more: what was shown is there, and then an error.
        let mut shown = Vec::new();
        let _ = terminal.read_to_end(&mut shown);
        assert_eq!(shown, b"", "{}", String::from_utf8_lossy(&shown));
        assert_eq!(key_file(&bench).exists(), code == 0);
        if code == 0 {
            assert!(fs::read_to_string(key_file(&bench)).unwrap().contains(KEY));
        }
    }
}

/// Everybody who logs in at the same time is in the file.
#[tokio::test]
async fn logins_at_the_same_time_all_count() {
    let bench = Bench::new();
    let providers = ["anthropic", "openai", "gemini", "groq", "mistral", "xai", "qwen", "zhipu"];
    let login = |provider: &&str| bench.program(["login", provider]).piped(KEY).start();
    let running: Vec<_> = providers.iter().map(login).collect();
    for running in running {
        let ended = running.end().await;
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    }
    let stored: toml::Table =
        toml::from_str(&fs::read_to_string(key_file(&bench)).unwrap()).unwrap();
    let mut names: Vec<&str> =
        stored["providers"].as_table().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    let mut expected = providers.to_vec();
    expected.sort_unstable();
    assert_eq!(names, expected);
}

/// SPEC U4: a disk that is full, a place that cannot be written to: said, and nothing is lost.
#[tokio::test]
async fn a_key_that_cannot_be_stored_is_said() {
    let bench = Bench::new();
    login(&bench, "anthropic").await;
    let before = fs::read(key_file(&bench)).unwrap();
    let full = bench.program(["login", "openai"]).piped(KEY).with_full_disk().run().await;
    let (code, stdout, stderr) = said(&bench, &full);
    assert_eq!((code, stdout.as_str()), (1, ""));
    let expected = "error: cannot write PLACE/agent/config/credentials.toml: File too large";
    assert!(stderr.starts_with(expected) && stderr.contains("\nhint: "), "{stderr}");
    let full = bench.program(["logout", "anthropic"]).with_full_disk().run().await;
    assert_eq!(full.code, 1, "{full:?}");
    assert_eq!(fs::read(key_file(&bench)).unwrap(), before);

    let nowhere = bench
        .program(["login", "openai"])
        .piped(KEY)
        .variable("CODING_AGENT_HOME", "/proc/none")
        .run()
        .await;
    assert_eq!(nowhere.code, 1, "{nowhere:?}");
    let expected = "error: cannot write /proc/none/config/credentials.toml: ";
    assert!(nowhere.stderr.starts_with(expected), "{nowhere:?}");
}

/// SPEC M20: a file that is not as it should be stops only those who need it, and is not quoted.
#[tokio::test]
async fn a_file_of_keys_that_cannot_be_used_is_said() {
    let place = "PLACE/agent/config/credentials.toml";
    for (content, mode, expected) in [
        (
            format!("[providers.openai]\nkey = {KEY}\n"),
            0o600,
            format!(
                "{place}, line 2: this is not TOML\nhint: mend it, or move it out of the way and \
                 store the keys again with `coding-agent login`\n"
            ),
        ),
        (
            format!("[providers.openai]\nkey = '{KEY}'\n"),
            0o644,
            format!(
                "{place} can be read by others: its mode is 644\nhint: chmod 600 {place}; and if \
                 anybody else uses this machine, replace the keys in it\n"
            ),
        ),
    ] {
        let bench = Bench::new();
        fs::write(key_file(&bench), &content).unwrap();
        fs::set_permissions(key_file(&bench), Permissions::from_mode(mode)).unwrap();
        let ended = bench.program(["-p", "x", "--model", "openai/m"]).run().await;
        assert_eq!(said(&bench, &ended), (2, String::new(), format!("error: {expected}")));
        for arguments in [&["doctor"][..], &["models"], &["config", "show"]] {
            let ended = bench.program(arguments).arguments(["--model", "openai/m"]).run().await;
            let (code, stdout, _) = said(&bench, &ended);
            assert_eq!(code, 0);
            assert!(stdout.contains(expected.split('\n').next().unwrap()), "{stdout}");
        }
        // A key from elsewhere needs no file.
        let model = answering(&["Here."]).await;
        let asking = bench.program(["-p", "x"]).asking(&model, Api::OpenaiChat).run().await;
        assert_eq!(asking.all(), (0, "Here.\n", ""));
    }
}

/// A stronger place is pointed out, so that nobody wonders.
#[tokio::test]
async fn what_counts_before_the_stored_key_is_said() {
    let bench = Bench::new();
    let login = bench.program(["login", "openai"]).piped(KEY).variable("OPENAI_API_KEY", KEY);
    assert_eq!(
        login.run().await.stderr,
        "note: OPENAI_API_KEY is set, and counts before what is stored\n"
    );
    bench.configure("providers.openai.key_command = 'true'\n");
    assert_eq!(
        bench.program(["logout", "openai"]).run().await.stderr,
        "note: the configuration's key_command counts before what is stored\n"
    );
}

/// A command that counts its runs and prints the key.
fn counting(bench: &Bench, printed: &str) -> String {
    format!("echo run >>{}; {printed}", bench.root().join("runs").display())
}

fn runs(bench: &Bench) -> usize {
    fs::read_to_string(bench.root().join("runs")).unwrap_or_default().lines().count()
}

/// SPEC M20: a key command runs when the provider is asked, once, and is shown nowhere.
#[tokio::test]
async fn a_key_command_runs_once_and_late() {
    for stored in [false, true] {
        let bench = Bench::new();
        let command = counting(&bench, &format!("echo {KEY}"));
        let script = Script::new("scripted")
            .turn(Turn::new().call("Read", json!({"path": "a.txt"})))
            .turn(Turn::text_only("Here."));
        let model = ScriptedModel::start(script).await.unwrap();
        let api = Api::OpenaiChat;
        let base =
            format!("[providers.mine]\napi = '{api}'\nbase_url = '{}'\n", model.base_url(api));
        if stored {
            bench.configure(&base);
            let login = bench.program(["login", "mine", "--key-command", &command]).run().await;
            assert!(login.stdout.starts_with("stored the key command of mine in "), "{login:?}");
        } else {
            bench.configure(&format!("{base}key_command = '{command}'\n"));
        }
        for arguments in [&["doctor"][..], &["models"], &["config", "show"], &["tool", "list"]] {
            let program = bench.program(arguments).variable("CODING_AGENT_LOG", "trace");
            let ended = program.run().await;
            assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
        }
        assert_eq!(runs(&bench), 0, "nothing was asked");
        bench.write("a.txt", "alpha\n");
        let ended = bench
            .program(["-p", "hello", "--model", "mine/m", "--output-format", "stream-json"])
            .checked_by(&model)
            .variable("CODING_AGENT_LOG", "trace")
            .run()
            .await;
        assert_eq!((ended.code, runs(&bench)), (0, 1), "{ended:?}");
        for request in model.requests() {
            assert_eq!(request.header("authorization").unwrap(), format!("Bearer {KEY}"));
        }
    }
}

/// An hour's token that has expired: the command is asked again, and if it has another key, so is the
/// provider, once.
#[tokio::test]
async fn a_refused_key_is_renewed_once() {
    // The key of the nth run ends in n.
    let new_each_time = format!("echo {KEY}$(wc -l <RUNS | tr -d ' ')");
    let the_same = format!("echo {KEY}");
    let fail = format!("test $(wc -l <RUNS) = 1 && echo {KEY}");
    for (printed, refusals, code, asked, retries) in [
        (&new_each_time, 1, 0, 2, 1),
        (&new_each_time, 2, 1, 2, 1),
        (&the_same, 1, 1, 1, 0),
        (&fail, 1, 1, 1, 0),
    ] {
        let bench = Bench::new();
        let printed = printed.replace("RUNS", bench.root().join("runs").to_str().unwrap());
        let refuse = |script: Script, _| script.turn(Turn::fault_only(Fault::status(401)));
        let script = (0..refusals).fold(Script::new("scripted"), refuse);
        let model = ScriptedModel::start(script.turn(Turn::text_only("Here."))).await.unwrap();
        let api = Api::AnthropicMessages;
        bench.configure(&format!(
            "[providers.mine]\napi = '{api}'\nbase_url = '{}'\nkey_command = \"{}\"\n",
            model.base_url(api),
            counting(&bench, &printed)
        ));
        let ended = bench
            .program(["-p", "hello", "--model", "mine/m", "--output-format", "stream-json"])
            .checked_by(&model)
            .run()
            .await;
        assert_eq!(ended.code, code, "{ended:?}");
        let keys: Vec<String> = model
            .requests()
            .iter()
            .map(|request| request.header("x-api-key").unwrap().replace(KEY, ""))
            .collect();
        assert_eq!(keys.len(), asked, "{printed} {keys:?}");
        if asked == 2 {
            assert_eq!(keys, ["1", "2"]);
        }
        let events = ended.events();
        let seen = events.iter().filter(|event| event["type"] == "retry").count();
        assert_eq!(seen, retries, "{ended:?}");
        assert_eq!(runs(&bench), 2, "{printed}");
        let starts = |event: &&Value| event["event"]["type"] == "start";
        assert!(events.iter().filter(starts).count() < 2, "{ended:?}");
    }
}

/// SPEC M20, U4: a command that gives no key ends the run with what it said, but for keys.
#[tokio::test]
async fn a_key_command_that_fails_is_said() {
    for (command, said) in [
        ("echo locked >&2; exit 3".to_owned(), "it failed with exit status: 3: locked"),
        (format!("echo no {KEY} here >&2; exit 1"), "it failed with exit status: 1: no [key] here"),
        ("true".to_owned(), "what it printed is no key: it is empty"),
        (
            format!("echo key: {KEY}"),
            "what it printed is no key: it holds white space or characters that no key has",
        ),
    ] {
        let bench = Bench::new();
        bench.configure(&format!(
            "[providers.mine]\napi = 'openai-chat'\nbase_url = 'http://127.0.0.1:1'\n\
             key_command = '{command}'\n"
        ));
        let ended = bench.program(["-p", "hello", "--model", "mine/m"]).run().await;
        assert_eq!(
            ended.all(),
            (
                1,
                "",
                &*format!(
                    "error: auth: the key_command of provider `mine` gave no key: {said}\n\
                     hint: mine has its key from the configuration's key_command\n"
                )
            )
        );
    }
}

/// A key command that hangs ends with whatever waits for it, with all that it started.
#[tokio::test]
async fn an_interrupted_program_leaves_no_key_command() {
    for arguments in [
        &["-p", "hello", "--model", "mine/m"][..],
        &["models", "--refresh"],
        &["models", "mine", "--refresh"],
    ] {
        let bench = Bench::new();
        let up = bench.root().join("up");
        let mkfifo = std::process::Command::new("mkfifo").arg(&up).status().unwrap();
        assert!(mkfifo.success());
        bench.configure(&format!(
            "[providers.mine]\napi = 'openai-chat'\nbase_url = 'http://127.0.0.1:1'\n\
             key_command = 'sleep 60 & echo >{}; sleep 60'\n",
            up.display()
        ));
        let running = bench.program(arguments.iter().copied()).start();
        let waited = tokio::task::spawn_blocking(move || fs::read(up).unwrap());
        assert_eq!(waited.await.unwrap(), b"\n");
        running.signal(Signal::INT);
        assert_eq!(running.end().await.code, 130, "{arguments:?}");
    }
}
