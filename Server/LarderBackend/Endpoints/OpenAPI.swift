/// The OpenAPI 3.1 description of the API: `openapi.json` in this folder.
enum OpenAPI {
    static let document = EmbeddedDocument.openapi.bytes
}
