/// The description of the API that the server serves (OpenAPI 3.1).
enum OpenAPI {
    static let document: [UInt8] = Array("{}".utf8)
}
