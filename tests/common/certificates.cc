#include "tests/common/certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace fncache::testing {
namespace {

void Must(bool held) {
  if (!held) std::abort();
}

std::string Text(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, size);
  BIO_free(bio);
  return text;
}

EVP_PKEY* ReadKey(const std::string& pem) {
  BIO* bio = BIO_new_mem_buf(pem.data(), pem.size());
  EVP_PKEY* key = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  Must(key != nullptr);
  return key;
}

void AddExtension(X509* certificate, X509V3_CTX* context, int id,
                  const char* value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, context, id, value);
  Must(extension != nullptr);
  Must(X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

}  // namespace

TempDir::TempDir() {
  std::string path =
      (std::filesystem::temp_directory_path() / "fncache_test_XXXXXX").string();
  Must(mkdtemp(path.data()) != nullptr);
  path_ = path;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void WriteFile(const std::string& path, const std::string& content) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << content;
  out.close();
  Must(out.good());
}

Pem MakeCertificate(const std::string& name, const Pem* issuer, absl::Time from,
                    absl::Time until) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  Must(key != nullptr);
  X509* certificate = X509_new();
  Must(X509_set_version(certificate, 2) == 1);
  int64_t serial = 0;
  Must(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) ==
       1);
  ASN1_INTEGER_set_int64(X509_get_serialNumber(certificate),
                         serial & 0x7fffffffffffffff);
  Must(ASN1_TIME_set(X509_getm_notBefore(certificate), absl::ToTimeT(from)) !=
       nullptr);
  Must(ASN1_TIME_set(X509_getm_notAfter(certificate), absl::ToTimeT(until)) !=
       nullptr);
  X509_set_pubkey(certificate, key);
  X509_NAME* subject = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(
      subject, "CN", MBSTRING_ASC,
      reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);

  X509* signer = certificate;
  EVP_PKEY* signer_key = key;
  if (issuer != nullptr) {
    BIO* bio =
        BIO_new_mem_buf(issuer->certificate.data(), issuer->certificate.size());
    signer = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
    BIO_free(bio);
    Must(signer != nullptr);
    signer_key = ReadKey(issuer->key);
  }
  X509_set_issuer_name(certificate, X509_get_subject_name(signer));
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, signer, certificate, nullptr, nullptr, 0);
  AddExtension(certificate, &context, NID_basic_constraints,
               issuer == nullptr ? "critical,CA:TRUE" : "critical,CA:FALSE");
  AddExtension(certificate, &context, NID_subject_alt_name,
               "DNS:localhost,IP:127.0.0.1");
  Must(X509_sign(certificate, signer_key, EVP_sha256()) > 0);

  Pem pem;
  BIO* out = BIO_new(BIO_s_mem());
  Must(PEM_write_bio_X509(out, certificate) == 1);
  pem.certificate = Text(out);
  out = BIO_new(BIO_s_mem());
  Must(PEM_write_bio_PrivateKey(out, key, nullptr, nullptr, 0, nullptr,
                                nullptr) == 1);
  pem.key = Text(out);
  if (issuer != nullptr) {
    X509_free(signer);
    EVP_PKEY_free(signer_key);
  }
  X509_free(certificate);
  EVP_PKEY_free(key);
  return pem;
}

std::string EncryptedKey(const std::string& key_pem) {
  EVP_PKEY* key = ReadKey(key_pem);
  BIO* out = BIO_new(BIO_s_mem());
  unsigned char phrase[] = "open sesame";
  Must(PEM_write_bio_PKCS8PrivateKey(out, key, EVP_aes_256_cbc(),
                                     reinterpret_cast<char*>(phrase),
                                     sizeof phrase - 1, nullptr, nullptr) == 1);
  EVP_PKEY_free(key);
  return Text(out);
}

}  // namespace fncache::testing
