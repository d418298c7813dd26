import Testing

@testable import LarderBackend

@Suite("Folders of source files")
struct SourceFolderTests {
    @Test(arguments: [
        ("/routes.json", "/"), ("/api/routes.json", "/api"), ("api/routes.json", "api"), ("routes.json", "."),
        ("/", "/"),
    ])
    func `a file is watched in its folder`(path: String, folder: String) {
        #expect(SourceFile.folder(of: path) == folder)
    }
}
