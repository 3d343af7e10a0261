//! stub
/// x
#[derive(Debug)]
pub struct ArgumentValidator;
/// x
#[derive(Debug)]
pub struct InvalidArguments;
/// x
#[derive(Debug)]
pub struct InvalidSchema;
