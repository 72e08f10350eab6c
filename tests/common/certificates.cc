// SPDX-License-Identifier: Apache-2.0
#include "tests/common/certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <cstdlib>

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

// Critical, and nothing that OpenSSL checks in a certificate.
void AddUnknownExtension(X509* certificate) {
  ASN1_OCTET_STRING* content = ASN1_OCTET_STRING_new();
  Must(ASN1_OCTET_STRING_set(
           content, reinterpret_cast<const unsigned char*>("\5\0"), 2) == 1);
  X509_EXTENSION* extension = X509_EXTENSION_create_by_NID(
      nullptr, NID_hold_instruction_code, /*crit=*/1, content);
  Must(extension != nullptr);
  Must(X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
  ASN1_OCTET_STRING_free(content);
}

}  // namespace

CertificateDir::CertificateDir(const Pem& pair, const std::string& ca) {
  WriteFile(dir_.File("tls.crt"), pair.certificate);
  WriteFile(dir_.File("tls.key"), pair.key);
  if (!ca.empty()) WriteFile(dir_.File("ca.crt"), ca);
}

Pem MakeCertificate(const std::string& name, const Pem* issuer, absl::Time from,
                    absl::Time until) {
  CertificateOptions options;
  options.subject = {{"CN", name}};
  options.authority = issuer == nullptr;
  options.from = from;
  options.until = until;
  return MakeCertificate(options, issuer);
}

Pem MakeCertificate(const CertificateOptions& options, const Pem* issuer) {
  EVP_PKEY* key = !options.key.empty()    ? ReadKey(options.key)
                  : options.rsa_bits == 0 ? EVP_EC_gen(options.curve.c_str())
                                          : EVP_RSA_gen(options.rsa_bits);
  Must(key != nullptr);
  X509* certificate = X509_new();
  Must(X509_set_version(certificate, 2) == 1);
  int64_t serial = 0;
  Must(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) ==
       1);
  ASN1_INTEGER_set_int64(X509_get_serialNumber(certificate),
                         options.serial.value_or(serial & 0x7fffffffffffffff));
  Must(ASN1_TIME_set(X509_getm_notBefore(certificate),
                     absl::ToTimeT(options.from)) != nullptr);
  Must(ASN1_TIME_set(X509_getm_notAfter(certificate),
                     absl::ToTimeT(options.until)) != nullptr);
  X509_set_pubkey(certificate, key);
  X509_NAME* subject = X509_get_subject_name(certificate);
  for (const auto& [type, value] : options.subject) {
    // As it is: OpenSSL would refuse a country of more than two letters.
    Must(X509_NAME_add_entry_by_txt(
             subject, type.c_str(),
             options.subject_type == 0 ? V_ASN1_PRINTABLESTRING
                                       : options.subject_type,
             reinterpret_cast<const unsigned char*>(value.c_str()), -1, -1,
             0) == 1);
  }

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
  const auto add = [&](int id, const std::string& value) {
    if (!value.empty()) AddExtension(certificate, &context, id, value.c_str());
  };
  add(NID_basic_constraints,
      options.authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
  add(NID_key_usage, options.key_usage);
  add(NID_ext_key_usage, options.extended_key_usage);
  add(NID_subject_alt_name, options.alt_names);
  add(NID_name_constraints, options.name_constraints);
  add(NID_sbgp_ipAddrBlock, options.resources);
  if (options.key_identifiers) {
    add(NID_subject_key_identifier, "hash");
    if (issuer != nullptr) add(NID_authority_key_identifier, "keyid");
  }
  if (options.unknown_critical) AddUnknownExtension(certificate);
  Must(X509_sign(certificate, signer_key,
                 EVP_get_digestbyname(options.digest.c_str())) > 0);

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

CertificateOptions CrossplaneAuthority() {
  CertificateOptions options;
  options.subject = {{"C", "Earth"},
                     {"ST", "Earth"},
                     {"L", "Earth"},
                     {"O", "Crossplane"},
                     {"CN", "Crossplane"}};
  options.serial = 2022;
  options.rsa_bits = 2048;
  options.authority = true;
  options.key_usage = "critical,keyCertSign,cRLSign";
  options.alt_names = "DNS:crossplane-root-ca";
  return options;
}

CertificateOptions CrossplaneServer() {
  CertificateOptions options = CrossplaneAuthority();
  options.authority = false;
  options.key_usage =
      "critical,digitalSignature,keyEncipherment,dataEncipherment";
  options.extended_key_usage = "serverAuth";
  options.alt_names = "DNS:function-x,DNS:localhost,IP:127.0.0.1";
  return options;
}

CertificateOptions CrossplaneClient() {
  CertificateOptions options = CrossplaneServer();
  options.extended_key_usage = "clientAuth";
  options.alt_names = "DNS:crossplane.crossplane-system";
  return options;
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
