import Foundation

/// Prints a line without buffering, also if the output is not a terminal.
public func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }
