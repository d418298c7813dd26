import Glibc
import Synchronization

/// The functions of the system's OpenSSL (1.1.1 or 3), resolved once for the process.
///
/// `@unchecked Sendable`: the table is immutable, and OpenSSL's functions may be called from any thread. Objects of OpenSSL are
/// guarded by their Swift owners.
/// `@safe`: callers state `unsafe` at each call.
@safe final class OpenSSL: @unchecked Sendable {
    typealias Handle = OpaquePointer?
    typealias Bytes = UnsafePointer<UInt8>?
    typealias Text = UnsafePointer<CChar>?
    typealias Raw = UnsafeMutableRawPointer?
    typealias Password = @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, Raw) -> Int32
    typealias Verify = @convention(c) (Int32, Handle) -> Int32
    typealias ChooseProtocol =
        @convention(c) (
            Handle, UnsafeMutablePointer<UnsafePointer<UInt8>?>?, UnsafeMutablePointer<UInt8>?, Bytes, UInt32, Raw
        ) -> Int32
    typealias NewSession = @convention(c) (Handle, Handle) -> Int32
    typealias ChooseCertificate = @convention(c) (Handle, Raw) -> Int32

    /// The library; an error that says what to install if it is missing.
    static let shared: Result<OpenSSL, TLSError> = load()

    /// The library.
    ///
    /// - Throws: `.unavailable`.
    static func required() throws(TLSError) -> OpenSSL { try shared.get() }

    // MARK: Errors and byte streams

    let clearErrors: @convention(c) () -> Void = symbol("ERR_clear_error")
    let nextError: @convention(c) () -> UInt = symbol("ERR_get_error")
    let reason: @convention(c) (UInt) -> Text = unsafe symbol("ERR_reason_error_string")
    let memoryBIO: @convention(c) () -> Handle = unsafe symbol("BIO_s_mem")
    let newBIO: @convention(c) (Handle) -> Handle = unsafe symbol("BIO_new")
    let newBIOReading: @convention(c) (UnsafeRawPointer?, Int32) -> Handle = unsafe symbol("BIO_new_mem_buf")
    let freeBIO: @convention(c) (Handle) -> Int32 = unsafe symbol("BIO_free")
    let readBIO: @convention(c) (Handle, Raw, Int32) -> Int32 = unsafe symbol("BIO_read")
    let writeBIO: @convention(c) (Handle, UnsafeRawPointer?, Int32) -> Int32 = unsafe symbol("BIO_write")
    let pendingInBIO: @convention(c) (Handle) -> Int = unsafe symbol("BIO_ctrl_pending")
    let random: @convention(c) (UnsafeMutablePointer<UInt8>?, Int32) -> Int32 = unsafe symbol("RAND_bytes")

    // MARK: Reading certificates

    let freeCertificate: @convention(c) (Handle) -> Void = unsafe symbol("X509_free")
    let retainCertificate: @convention(c) (Handle) -> Int32 = unsafe symbol("X509_up_ref")
    let certificateFromDER: @convention(c) (Raw, UnsafeMutablePointer<UnsafePointer<UInt8>?>?, Int) -> Handle =
        unsafe symbol("d2i_X509")
    let derOfCertificate: @convention(c) (Handle, UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32 =
        unsafe symbol("i2d_X509")
    let certificateFromPEM: @convention(c) (Handle, Raw, Password?, Raw) -> Handle = unsafe symbol("PEM_read_bio_X509")
    let writePEMOfCertificate: @convention(c) (Handle, Handle) -> Int32 = unsafe symbol("PEM_write_bio_X509")
    let subject: @convention(c) (Handle) -> Handle = unsafe symbol("X509_get_subject_name")
    let issuer: @convention(c) (Handle) -> Handle = unsafe symbol("X509_get_issuer_name")
    let printName: @convention(c) (Handle, Handle, Int32, UInt) -> Int32 = unsafe symbol("X509_NAME_print_ex")
    let notBefore: @convention(c) (Handle) -> Handle = unsafe symbol("X509_get0_notBefore")
    let notAfter: @convention(c) (Handle) -> Handle = unsafe symbol("X509_get0_notAfter")
    let timeToCivil: @convention(c) (Handle, UnsafeMutablePointer<tm>?) -> Int32 = unsafe symbol("ASN1_TIME_to_tm")
    let decodedExtension: @convention(c) (Handle, Int32, Raw, Raw) -> Handle = unsafe symbol("X509_get_ext_d2i")
    let freeNames: @convention(c) (Handle) -> Void = unsafe symbol("GENERAL_NAMES_free")
    let stackCount: @convention(c) (Handle) -> Int32 = unsafe symbol("OPENSSL_sk_num")
    let stackElement: @convention(c) (Handle, Int32) -> Handle = unsafe symbol("OPENSSL_sk_value")
    let nameValue: @convention(c) (Handle, UnsafeMutablePointer<Int32>?) -> Handle = unsafe symbol(
        "GENERAL_NAME_get0_value"
    )
    let stringData: @convention(c) (Handle) -> Bytes = unsafe symbol("ASN1_STRING_get0_data")
    let stringLength: @convention(c) (Handle) -> Int32 = unsafe symbol("ASN1_STRING_length")
    let publicKeyOf: @convention(c) (Handle) -> Handle = unsafe symbol("X509_get_X509_PUBKEY")
    let derOfPublicKey: @convention(c) (Handle, UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32 =
        unsafe symbol("i2d_X509_PUBKEY")
    let matchesKey: @convention(c) (Handle, Handle) -> Int32 = unsafe symbol("X509_check_private_key")
    let sha256: @convention(c) () -> Handle = unsafe symbol("EVP_sha256")
    let digest:
        @convention(c) (
            UnsafeRawPointer?, Int, UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<UInt32>?, Handle, Handle
        )
            -> Int32 = unsafe symbol("EVP_Digest")

    // MARK: Verification

    let verificationText: @convention(c) (Int) -> Text = unsafe symbol("X509_verify_cert_error_string")
    let verificationError: @convention(c) (Handle) -> Int32 = unsafe symbol("X509_STORE_CTX_get_error")
    let verificationCertificate: @convention(c) (Handle) -> Handle = unsafe symbol("X509_STORE_CTX_get_current_cert")
    let verificationData: @convention(c) (Handle, Int32) -> Raw = unsafe symbol("X509_STORE_CTX_get_ex_data")
    let verificationDepth: @convention(c) (Handle) -> Int32 = unsafe symbol("X509_STORE_CTX_get_error_depth")
    let verificationChain: @convention(c) (Handle) -> Handle = unsafe symbol("X509_STORE_CTX_get0_chain")
    let verificationDataIndex: @convention(c) () -> Int32 = symbol("SSL_get_ex_data_X509_STORE_CTX_idx")
    let addToStore: @convention(c) (Handle, Handle) -> Int32 = unsafe symbol("X509_STORE_add_cert")
    let setExpectedHost: @convention(c) (Handle, Text, Int) -> Int32 = unsafe symbol("X509_VERIFY_PARAM_set1_host")
    let setExpectedAddress: @convention(c) (Handle, Text) -> Int32 = unsafe symbol("X509_VERIFY_PARAM_set1_ip_asc")
    let setHostFlags: @convention(c) (Handle, UInt32) -> Void = unsafe symbol("X509_VERIFY_PARAM_set_hostflags")
    let setVerificationFlags: @convention(c) (Handle, UInt) -> Int32 = unsafe symbol("X509_VERIFY_PARAM_set_flags")
    let setVerificationTime: @convention(c) (Handle, Int) -> Void = unsafe symbol("X509_VERIFY_PARAM_set_time")
    let defaultRootsFile: @convention(c) () -> Text = unsafe symbol("X509_get_default_cert_file")
    let defaultRootsFolder: @convention(c) () -> Text = unsafe symbol("X509_get_default_cert_dir")

    // MARK: Making certificates

    let newCertificate: @convention(c) () -> Handle = unsafe symbol("X509_new")
    let setVersion: @convention(c) (Handle, Int) -> Int32 = unsafe symbol("X509_set_version")
    let serialNumber: @convention(c) (Handle) -> Handle = unsafe symbol("X509_get_serialNumber")
    let setInteger: @convention(c) (Handle, UInt64) -> Int32 = unsafe symbol("ASN1_INTEGER_set_uint64")
    let mutableNotBefore: @convention(c) (Handle) -> Handle = unsafe symbol("X509_getm_notBefore")
    let mutableNotAfter: @convention(c) (Handle) -> Handle = unsafe symbol("X509_getm_notAfter")
    let setTime: @convention(c) (Handle, Int) -> Handle = unsafe symbol("ASN1_TIME_set")
    let addToName: @convention(c) (Handle, Text, Int32, Bytes, Int32, Int32, Int32) -> Int32 =
        unsafe symbol("X509_NAME_add_entry_by_txt")
    let setIssuer: @convention(c) (Handle, Handle) -> Int32 = unsafe symbol("X509_set_issuer_name")
    let setPublicKey: @convention(c) (Handle, Handle) -> Int32 = unsafe symbol("X509_set_pubkey")
    let setExtensionContext: @convention(c) (Raw, Handle, Handle, Handle, Handle, Int32) -> Void =
        unsafe symbol("X509V3_set_ctx")
    let makeExtension: @convention(c) (Raw, Raw, Int32, Text) -> Handle = unsafe symbol("X509V3_EXT_conf_nid")
    let addExtension: @convention(c) (Handle, Handle, Int32) -> Int32 = unsafe symbol("X509_add_ext")
    let freeExtension: @convention(c) (Handle) -> Void = unsafe symbol("X509_EXTENSION_free")
    let sign: @convention(c) (Handle, Handle, Handle) -> Int32 = unsafe symbol("X509_sign")

    // MARK: Keys and ciphers

    let freeKey: @convention(c) (Handle) -> Void = unsafe symbol("EVP_PKEY_free")
    let keyFromPEM: @convention(c) (Handle, Raw, Password?, Raw) -> Handle = unsafe symbol("PEM_read_bio_PrivateKey")
    let writePEMOfKey: @convention(c) (Handle, Handle, Handle, Bytes, Int32, Password?, Raw) -> Int32 =
        unsafe symbol("PEM_write_bio_PrivateKey")
    let newKeyContext: @convention(c) (Int32, Handle) -> Handle = unsafe symbol("EVP_PKEY_CTX_new_id")
    let freeKeyContext: @convention(c) (Handle) -> Void = unsafe symbol("EVP_PKEY_CTX_free")
    let beginKey: @convention(c) (Handle) -> Int32 = unsafe symbol("EVP_PKEY_keygen_init")
    let setKeyOption: @convention(c) (Handle, Text, Text) -> Int32 = unsafe symbol("EVP_PKEY_CTX_ctrl_str")
    let makeKey: @convention(c) (Handle, UnsafeMutablePointer<OpaquePointer?>?) -> Int32 = unsafe symbol(
        "EVP_PKEY_keygen"
    )
    let aes256GCM: @convention(c) () -> Handle = unsafe symbol("EVP_aes_256_gcm")
    let newCipher: @convention(c) () -> Handle = unsafe symbol("EVP_CIPHER_CTX_new")
    let freeCipher: @convention(c) (Handle) -> Void = unsafe symbol("EVP_CIPHER_CTX_free")
    let cipherControl: @convention(c) (Handle, Int32, Int32, Raw) -> Int32 = unsafe symbol("EVP_CIPHER_CTX_ctrl")
    let beginCipher: @convention(c) (Handle, Handle, Handle, Bytes, Bytes, Int32) -> Int32 = unsafe symbol(
        "EVP_CipherInit_ex"
    )
    let cipher:
        @convention(c) (Handle, UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<Int32>?, Bytes, Int32) -> Int32 =
            unsafe symbol("EVP_CipherUpdate")
    let endCipher: @convention(c) (Handle, UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<Int32>?) -> Int32 =
        unsafe symbol("EVP_CipherFinal_ex")

    // MARK: Contexts

    let clientMethod: @convention(c) () -> Handle = unsafe symbol("TLS_client_method")
    let serverMethod: @convention(c) () -> Handle = unsafe symbol("TLS_server_method")
    let newContext: @convention(c) (Handle) -> Handle = unsafe symbol("SSL_CTX_new")
    let freeContext: @convention(c) (Handle) -> Void = unsafe symbol("SSL_CTX_free")
    let controlContext: @convention(c) (Handle, Int32, Int, Raw) -> Int = unsafe symbol("SSL_CTX_ctrl")
    let setOptions: @convention(c) (Handle, UInt64) -> UInt64 = unsafe symbol("SSL_CTX_set_options")
    let setVerify: @convention(c) (Handle, Int32, Verify?) -> Void = unsafe symbol("SSL_CTX_set_verify")
    let rootsOfContext: @convention(c) (Handle) -> Handle = unsafe symbol("SSL_CTX_get_cert_store")
    let offerProtocols: @convention(c) (Handle, Bytes, UInt32) -> Int32 = unsafe symbol("SSL_CTX_set_alpn_protos")
    let setProtocolChoice: @convention(c) (Handle, ChooseProtocol?, Raw) -> Void = unsafe symbol(
        "SSL_CTX_set_alpn_select_cb"
    )
    let useCertificateInContext: @convention(c) (Handle, Handle) -> Int32 = unsafe symbol("SSL_CTX_use_certificate")
    let useKeyInContext: @convention(c) (Handle, Handle) -> Int32 = unsafe symbol("SSL_CTX_use_PrivateKey")
    let setNewSession: @convention(c) (Handle, NewSession?) -> Void = unsafe symbol("SSL_CTX_sess_set_new_cb")
    let setCertificateChoice: @convention(c) (Handle, ChooseCertificate?, Raw) -> Void = unsafe symbol(
        "SSL_CTX_set_cert_cb"
    )
    let setSessionContext: @convention(c) (Handle, Bytes, UInt32) -> Int32 = unsafe symbol(
        "SSL_CTX_set_session_id_context"
    )

    // MARK: Sessions

    let new: @convention(c) (Handle) -> Handle = unsafe symbol("SSL_new")
    let free: @convention(c) (Handle) -> Void = unsafe symbol("SSL_free")
    let control: @convention(c) (Handle, Int32, Int, Raw) -> Int = unsafe symbol("SSL_ctrl")
    let setBIOs: @convention(c) (Handle, Handle, Handle) -> Void = unsafe symbol("SSL_set_bio")
    let becomeClient: @convention(c) (Handle) -> Void = unsafe symbol("SSL_set_connect_state")
    let becomeServer: @convention(c) (Handle) -> Void = unsafe symbol("SSL_set_accept_state")
    let shakeHands: @convention(c) (Handle) -> Int32 = unsafe symbol("SSL_do_handshake")
    let read: @convention(c) (Handle, Raw, Int32) -> Int32 = unsafe symbol("SSL_read")
    let write: @convention(c) (Handle, UnsafeRawPointer?, Int32) -> Int32 = unsafe symbol("SSL_write")
    let errorKind: @convention(c) (Handle, Int32) -> Int32 = unsafe symbol("SSL_get_error")
    let shutDown: @convention(c) (Handle) -> Int32 = unsafe symbol("SSL_shutdown")
    let verification: @convention(c) (Handle) -> Handle = unsafe symbol("SSL_get0_param")
    let setData: @convention(c) (Handle, Int32, Raw) -> Int32 = unsafe symbol("SSL_set_ex_data")
    let data: @convention(c) (Handle, Int32) -> Raw = unsafe symbol("SSL_get_ex_data")
    let serverName: @convention(c) (Handle, Int32) -> Text = unsafe symbol("SSL_get_servername")
    let useCertificate: @convention(c) (Handle, Handle) -> Int32 = unsafe symbol("SSL_use_certificate")
    let useKey: @convention(c) (Handle, Handle) -> Int32 = unsafe symbol("SSL_use_PrivateKey")
    let setSession: @convention(c) (Handle, Handle) -> Int32 = unsafe symbol("SSL_set_session")
    let copySession: @convention(c) (Handle) -> Handle = unsafe symbol("SSL_SESSION_dup")
    let freeSession: @convention(c) (Handle) -> Void = unsafe symbol("SSL_SESSION_free")
    let isResumable: @convention(c) (Handle) -> Int32 = unsafe symbol("SSL_SESSION_is_resumable")
    let wasResumed: @convention(c) (Handle) -> Int32 = unsafe symbol("SSL_session_reused")

    private init() {}

    // MARK: Loading

    /// The file names of libssl and libcrypto, newest first. `libssl` loads the libcrypto that it was linked with.
    static let candidates = [["libssl.so.3", "libcrypto.so.3"], ["libssl.so.1.1", "libcrypto.so.1.1"]]

    private static let library = open(candidates)
    private static let missing = Mutex<[String]>([])

    private static func load() -> Result<OpenSSL, TLSError> {
        if case .failure(let error) = library { return .failure(error) }
        let table = OpenSSL()
        let names = missing.withLock { $0 }
        guard names.isEmpty else {
            return .failure(
                TLSError(
                    .unavailable,
                    "The system's OpenSSL does not have \(names.joined(separator: ", ")). Install OpenSSL 3 or 1.1.1 (Debian, Ubuntu: "
                        + "apt-get install libssl3)."
                )
            )
        }
        return .success(table)
    }

    /// The handles of the first pair of libraries that the system has.
    static func open(_ candidates: [[String]]) -> Result<[UInt], TLSError> {
        for names in candidates {
            // RTLD_LOCAL, so that a second OpenSSL in the process does not mix with this one.
            let handles = names.compactMap { unsafe dlopen($0, RTLD_NOW | RTLD_LOCAL).map { UInt(bitPattern: $0) } }
            if handles.count == names.count { return .success(handles) }
        }
        return .failure(
            TLSError(
                .unavailable,
                "https needs the system's OpenSSL, and none of \(candidates.compactMap(\.first).joined(separator: ", ")) was found. Install "
                    + "it (Debian, Ubuntu: apt-get install libssl3; Fedora: dnf install openssl-libs; Alpine: apk add libssl3), or use http."
            )
        )
    }

    /// The address of a function. A missing one is recorded, and its address is that of a function which ends the process.
    private static func symbol<Function>(_ name: String) -> Function {
        let handles = (try? library.get()) ?? []
        for handle in handles {
            if let address = unsafe dlsym(UnsafeMutableRawPointer(bitPattern: handle), name) {
                return unsafe unsafeBitCast(address, to: Function.self)
            }
        }
        missing.withLock { $0.append(name) }
        let never: @convention(c) () -> Void = { preconditionFailure("A function of OpenSSL is missing.") }
        return unsafe unsafeBitCast(never, to: Function.self)
    }
}

extension OpenSSL {
    /// The reason of the last failed call on this thread; nil if OpenSSL gave none.
    func takeReason() -> String? {
        var first: String?
        while true {
            let code = nextError()
            guard code != 0 else { return first }
            if first == nil { first = unsafe reason(code).map { unsafe String(cString: $0) } ?? Self.alert(code) }
        }
    }

    /// An alert of the peer that OpenSSL 1.1 has no text for; nil for other codes. The number of the alert (RFC 8446 section 6) is in the
    /// low bits of the code, plus 1000.
    private static func alert(_ code: UInt) -> String? {
        let number = Int(code & 0xFFF) - 1000
        guard number > 0 else { return nil }
        return "tlsv1 alert \(number == 120 ? "no application protocol" : "number \(number)")"
    }

    /// Everything that a call writes into a memory BIO.
    func collect(_ body: (OpaquePointer?) -> Bool) -> [UInt8]? {
        guard let bio = unsafe newBIO(memoryBIO()) else { return nil }
        defer { _ = unsafe freeBIO(bio) }
        guard unsafe body(bio) else { return nil }
        return unsafe drain(bio)
    }

    /// Takes all bytes out of a memory BIO.
    func drain(_ bio: OpaquePointer) -> [UInt8] {
        let count = unsafe pendingInBIO(bio)
        guard count > 0 else { return [] }
        return unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            initialized = max(0, Int(unsafe readBIO(bio, buffer.baseAddress, Int32(clamping: count))))
        }
    }

    /// The DER encoding that an `i2d` function of OpenSSL writes.
    func der(
        _ handle: OpaquePointer?,
        _ encode: (OpaquePointer?, UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32
    ) -> [UInt8] {
        let count = Int(unsafe encode(handle, nil))
        guard count > 0 else { return [] }
        return unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            var next = buffer.baseAddress
            initialized = max(0, Int(unsafe encode(handle, &next)))
        }
    }

    /// Random bytes of cryptographic quality.
    func randomBytes(_ count: Int) throws(TLSError) -> [UInt8] {
        var result: Int32 = 0
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            result = unsafe random(buffer.baseAddress, Int32(count))
            initialized = count
        }
        guard result == 1 else {
            throw TLSError(.unavailable, "OpenSSL has no random numbers: \(takeReason() ?? "no reason given").")
        }
        return bytes
    }

    func sha256(_ bytes: [UInt8]) -> [UInt8] {
        unsafe [UInt8](unsafeUninitializedCapacity: 32) { buffer, initialized in
            _ = unsafe digest(bytes, bytes.count, buffer.baseAddress, nil, sha256(), nil)
            initialized = 32
        }
    }
}
