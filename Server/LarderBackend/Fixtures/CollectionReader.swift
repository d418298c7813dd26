import LarderCoding
import LarderTime

/// Reads the user's own collections from a directory: each `NAME.json` is an array of objects with an `id`, or `db.json` is an
/// object of such arrays. An object instead of an array is a document of its own.
package struct CollectionReader {
    private static let nameLengthMaximum = 64
    private let errors = BodyErrors()

    /// - Throws: all errors of all files, with the file, the line and the member.
    package static func read(_ directory: String) throws(FileError) -> WorldContents {
        let hint = "larder-server init DIR writes an example"
        let files: [String]
        do { files = try SourceFile.names(in: directory) } catch { throw FileError("\(error); \(hint)") }
        guard files.count <= 1 || !files.contains("db.json") else {
            throw FileError("\(directory): has db.json and other JSON files; use one or the others")
        }
        var contents = WorldContents(origin: "collections in \(directory)", instant: WallTime(seconds: 0))
        var errors: [FileError] = []
        for file in files {
            do { contents.collections += try collections(directory, file) } catch { errors.append(error) }
        }
        guard errors.isEmpty else { throw FileError(errors) }
        guard !contents.collections.isEmpty else { throw FileError("\(directory): has no collections; \(hint)") }
        return contents
    }

    private static func collections(_ directory: String, _ file: String) throws(FileError)
        -> [WorldContents.Collection]
    {
        let path = directory + "/" + file
        let bytes = try SourceFile.bytes(path)
        let value = try SourceFile.json(bytes, named: path)
        let reader = CollectionReader()
        var collections: [WorldContents.Collection?] = []
        if file != "db.json" {
            collections = [reader.collection(String(file.dropLast(5)), value, at: "")]
        } else if let object = value.object {
            collections = object.members.map {
                reader.collection($0.name, $0.value, at: "/" + JSONPointer.escape($0.name))
            }
        } else {
            reader.errors.add("", "must be an object of arrays, such as {\"todos\": [{\"id\": 1}]}")
        }
        guard reader.errors.all.isEmpty else { throw FileError(path, bytes, reader.errors.all) }
        return collections.compactMap(\.self)
    }

    /// Nil after an error that concerns the collection as a whole.
    private func collection(_ name: String, _ value: JSONValue, at pointer: String) -> WorldContents.Collection? {
        let isPlain = name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-_".contains($0)) }
        guard isPlain, (1...Self.nameLengthMaximum).contains(name.utf8.count), !name.hasPrefix("_") else {
            errors.add(pointer, "must have a name of 1 to 64 letters, digits, - and _, which does not begin with _")
            return nil
        }
        guard !CollectionEndpoints.reserved.contains(name) else {
            errors.add(pointer, "must have another name, because /\(name) is a path of the server")
            return nil
        }
        var collection = WorldContents.Collection(name: name, isNumbered: true)
        if let object = value.object {
            collection.isSingular = true
            collection.documents = [(DocumentID(""), object)]
            return collection
        }
        guard let elements = value.array else {
            errors.add(pointer, "must be an array of objects, such as [{\"id\": 1}], or one object")
            return nil
        }
        var indices: [String: Int] = [:]
        for (index, element) in elements.enumerated() {
            let place = "\(pointer)/\(index)"
            guard let object = element.object else {
                errors.add(place, "must be an object")
                continue
            }
            guard let id = object["id"].flatMap({ DocumentID($0) }) else {
                errors.add(place + "/id", "must be an integer or a text of 1 to 200 bytes")
                continue
            }
            if let first = indices.updateValue(index, forKey: id.text) {
                errors.add(place + "/id", "is also that of \(pointer)/\(first); each document needs its own")
            }
            if id.json.integer == nil { collection.isNumbered = false }
            collection.documents.append((id, object))
        }
        return collection
    }
}
