import Foundation

/// Prints a line at once, also where the output is no terminal.
public func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }
