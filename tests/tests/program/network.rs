//! The way to the model: TLS, proxies, and what is said when the way is barred.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use ai::Api;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use scripted_model::{Script, ScriptedModel, Turn};
use tests::bench::Bench;
use tests::program::{KEY, Program};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A host that only the proxies of these tests know.
const HOST: &str = "model.test";

async fn says(text: &str) -> ScriptedModel {
    ScriptedModel::start(Script::new("scripted").turn(Turn::text_only(text))).await.unwrap()
}

/// An authority and a server's configuration with a certificate of its making for [`HOST`].
fn certified() -> (String, Arc<ServerConfig>) {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_certificate = authority.self_signed(&authority_key).unwrap();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate().unwrap();
    let names = vec![HOST.to_owned(), "127.0.0.1".to_owned()];
    let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    (pem("CERTIFICATE", authority_certificate.der()), Arc::new(config))
}

/// Binary data as the text that files of certificates hold.
fn pem(label: &str, der: &[u8]) -> String {
    let encoded = data_encoding::BASE64.encode(der);
    let lines: Vec<&str> =
        encoded.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

/// A port that speaks TLS and hands what it gets to the model.
async fn tls_before(model: SocketAddr, config: Arc<ServerConfig>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let acceptor = TlsAcceptor::from(config);
        while let Ok((socket, _)) = listener.accept().await {
            // One that does not trust us goes away in the handshake.
            let Ok(mut client) = acceptor.accept(socket).await else { continue };
            tokio::spawn(async move {
                let mut server = TcpStream::connect(model).await.unwrap();
                let _ = copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    address
}

/// A proxy that leads every host to one address, and what it was asked.
struct Proxy {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    async fn to(target: SocketAddr) -> Self {
        Self::answering("HTTP/1.1 200 OK\r\n\r\n", target).await
    }

    /// `connected` is what it says to a client that wants a tunnel.
    async fn answering(connected: &'static str, target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&heads);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let seen = Arc::clone(&seen);
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        let Ok(byte) = client.read_u8().await else { return };
                        head.push(byte);
                    }
                    let text = String::from_utf8(head).unwrap();
                    let is_tunnel = text.starts_with("CONNECT ");
                    // A plain request names the whole address, which a server wants shorter.
                    let passed = text.replacen(&format!("http://{HOST}"), "", 1);
                    seen.lock().unwrap().push(text);
                    let mut server = TcpStream::connect(target).await.unwrap();
                    if is_tunnel {
                        client.write_all(connected.as_bytes()).await.unwrap();
                        if !connected.contains(" 200 ") {
                            return;
                        }
                    } else {
                        server.write_all(passed.as_bytes()).await.unwrap();
                    }
                    let _ = copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
        Self { address, heads }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn asked(&self) -> Vec<String> {
        let heads = self.heads.lock().unwrap();
        heads.iter().map(|head| head.lines().next().unwrap().to_owned()).collect()
    }
}

fn asks<'b>(bench: &'b Bench, model: &'b ScriptedModel, base_url: &str) -> Program<'b> {
    let program = bench.program(["-p", "hello", "--config", "retry.max_attempts=1"]);
    program.asking(model, Api::AnthropicMessages).variable("ANTHROPIC_BASE_URL", base_url)
}

#[tokio::test]
async fn a_trusted_server_is_asked_over_tls_through_a_tunnel_and_without() {
    let bench = Bench::new();
    let (authority, config) = certified();
    let trusted = bench.write("authority.pem", authority);
    for (address, tunnel) in [(format!("https://{HOST}"), true), (String::new(), false)] {
        let model = says("over tls").await;
        let server = tls_before(model.address(), Arc::clone(&config)).await;
        let proxy = Proxy::to(server).await;
        let address = if tunnel { address } else { format!("https://{server}") };
        let (no_proxy, asked) = if tunnel {
            ("", vec![format!("CONNECT {HOST}:443 HTTP/1.1")])
        } else {
            ("127.0.0.1", vec![])
        };
        let ended = asks(&bench, &model, &address)
            .variable("SSL_CERT_FILE", &trusted)
            .variable("HTTPS_PROXY", proxy.url())
            .variable("NO_PROXY", no_proxy)
            .run()
            .await;
        assert_eq!(ended.all(), (0, "over tls\n", ""), "{address}");
        assert_eq!(proxy.asked(), asked, "{address}");
        // The proxy of a tunnel sees no key.
        assert!(!proxy.heads.lock().unwrap().concat().contains(KEY));
    }
}

#[tokio::test]
async fn an_untrusted_server_is_not_asked() {
    let bench = Bench::new();
    let model = says("never").await;
    let (_, config) = certified();
    let server = tls_before(model.address(), config).await;
    let ended = asks(&bench, &model, &format!("https://{server}")).run().await;
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
    assert!(ended.stderr.contains("invalid peer certificate"), "{}", ended.stderr);
    assert_eq!(model.requests().len(), 0);
}

#[tokio::test]
async fn a_plain_proxy_is_used_for_other_machines_only() {
    let bench = Bench::new();
    for (local, asked) in
        [(false, vec![format!("POST http://{HOST}/v1/messages HTTP/1.1")]), (true, Vec::new())]
    {
        let model = says("by proxy").await;
        let proxy = Proxy::to(model.address()).await;
        let base_url =
            if local { format!("http://{}", model.address()) } else { format!("http://{HOST}") };
        let ended = asks(&bench, &model, &base_url)
            .variable("HTTP_PROXY", proxy.url())
            .variable("http_proxy", proxy.url())
            .run()
            .await;
        assert_eq!(ended.all(), (0, "by proxy\n", ""), "{base_url}");
        assert_eq!(proxy.asked(), asked, "{base_url}");
    }
}

/// SPEC M20
#[tokio::test]
async fn a_proxy_that_refuses_is_named_without_its_password() {
    let bench = Bench::new();
    let model = says("never").await;
    let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n";
    let proxy = Proxy::answering(refusal, model.address()).await;
    let ended = asks(&bench, &model, &format!("https://{HOST}"))
        .variable("HTTPS_PROXY", format!("http://ada:{KEY}@{}", proxy.address))
        .run()
        .await;
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
    assert!(ended.stderr.contains("proxy"), "{}", ended.stderr);
    assert_eq!(proxy.asked(), [format!("CONNECT {HOST}:443 HTTP/1.1")]);
}
