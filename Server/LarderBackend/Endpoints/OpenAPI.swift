/// The OpenAPI 3.1 description of the API: `openapi.json` in this folder, embedded in the binary.
enum OpenAPI {
    static let document: [UInt8] = PackageResources.openapi_json
}
