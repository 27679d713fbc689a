"""Serbian left-overs in both scripts: the text is seen in Latin, casefolded, without marks.

đ is `dj`. Serbian drops the pronoun, so the first person is looked for in verbs and possessives.
"""

from __future__ import annotations

from nightdesk.desk.quality.leftovers.leftover import Leftover

_AI = (
    r"(?:(?:veliki |napredni )?jezicki model|(?:jedna )?v(?:j)?estacka inteligencija|"
    r"(?:jezicki )?model v(?:j)?estacke inteligencije|(?:ai|vi|virtueln\w{1,2}|digitaln\w{1,2}) "
    r"(?:model|asistent|jezicki model|sistem|alat|cetbot)|ai|llm|cetbot|chatbot)"
)
_FIRST_PERSON = (
    r"(?:ja|nemam|imam|ne mogu|mogu|nisam|sam|ne posedujem|posedujem|ne znam|ne zelim|"
    r"zelim|moram|nudim|nemam pristup|moj\w{0,4}|mog|mom|meni|mi je|necu)"
)
_WRITTEN = (
    r"(?:clan[ak]\w{0,4}|tekst\w{0,3}|nacrt\w{0,3}|verzij\w{1,3}|blog\w{0,4}|objav\w{1,3}|"
    r"sadrzaj\w{0,3}|post\w{0,3}|uvod\w{0,3}|rezime\w{0,3}|sazet\w{1,4})"
)
_UNIT = (
    r"(?:sat[ia]?|casova|minuta?|sekundi|dan[a]?|nedelja|meseci?|godin[ae]|evra|dinara|"
    r"kilometara|metara|odsto|posto|procenata|km|kg|cm|mm|gb|kw|kwh|rsd|eur)"
)

LEFTOVERS: tuple[Leftover, ...] = (
    Leftover(
        "placeholder_insert",
        r"\[ ?(?:molim\w{0,3} )?(?:ovde )?(?:ubac|unes|unet|unos|dodaj|dodat|umet|upis|popun|naved|"
        r"zamen|stavi|priloz|opisi|ukljuc)\w{0,6}\b[^\[\]\n]{0,200}\]"
        r"|\[[^\[\]\n]{1,80} (?:ovde|se unosi ovde) ?\]",
        "Put in what this note asks for and delete the brackets.",
    ),
    Leftover(
        "placeholder_slot",
        r"\[ ?(?:vas\w{0,3} |tvoj\w{0,3} )?(?:ime|prezime|ime i prezime|naziv|broj|datum|adresa|"
        r"e-?mejl|imejl|e-?mail|link|cena|iznos|godina|grad|lokacija|kljucna rec)"
        r"(?: (?:firme|kompanije|preduzeca|proizvoda|grada|sajta|autora|klijenta|kupca|telefona|"
        r"restorana|brenda|usluge|kontakta)){0,2} ?\]",
        "Fill this slot.",
    ),
    Leftover(
        "placeholder_todo",
        r"\[ ?(?:uraditi|treba (?:dodati|uneti|proveriti|dopuniti)|proveriti|dopuniti|za uraditi)\b"
        r"[^\[\]\n]{0,200}\]",
        "Do what this note says and delete it.",
    ),
    Leftover(
        "placeholder_citation",
        r"\[ ?(?:izvor|referenca|potreban izvor|potreban je izvor|trazi se izvor|nedostaje izvor|"
        r"potrebna referenca|izvor potreban|citat potreban|potreban citat) ?\??\]",
        "Name the source or take the statement out.",
    ),
    Leftover(
        "placeholder_image",
        r"\[ ?(?:slika|fotografija|snimak ekrana|video|grafikon|infografika|ilustracija|dijagram)"
        r" ?[:–—-] [^\[\]\n]{1,300}\]|\[ ?(?:slika|fotografija|infografika) ?\]",
        "Put in the picture or take the note out.",
    ),
    Leftover(
        "placeholder_xx",
        rf"\b(?:xx|xxx|hh|hhh) ?(?:{_UNIT}\b|%)",  # Cyrillic ХХ is hh in Latin
        "Put in the number.",
    ),
    Leftover(
        "placeholder_omitted",
        rf"[\[(](?:ostatak|nastavak|preostal\w{{1,3}}) {_WRITTEN}[^\[\]()\n]{{0,160}}[\])]"
        rf"|[\[(]{_WRITTEN} se nastavlja[^\[\]()\n]{{0,160}}[\])]",
        "Write the part that was left out.",
    ),
    Leftover(
        "ai_disclosure",
        rf"\bkao {_AI}(?: (?:koji|koja|kog|kojeg|koju|obucen|razvijen|kreiran)[^.!?,\n]{{1,60}})?"
        rf"[,–—-]? (?:\w{{1,20}} ){{0,3}}{_FIRST_PERSON}\b"
        rf"|\bja sam (?:samo |zapravo )?{_AI}\b"
        rf"|^(?:ali |nazalost, )?(?:samo )?sam {_AI}\b"
        r"|\bmoj(?:e|a|i) (?:baza )?(?:znanj[ea]|podaci za (?:obuku|trening)|podaci o obuci) "
        r"(?:je ogranicen\w|su ogranicen\w|sez[eu]|ide|zavrsava|ne obuhvata|obuhvata)\b"
        r"|\bmo(?:g|m) poslednje(?:g|m) azuriranj[au]\b"
        r"|\bne(?:mam| posedujem) (?:pristup )?(?:podacima|informacijama|informacije|podatke) u "
        r"(?:realnom|stvarnom) vremenu\b",
        "Remove what the model says about itself.",
    ),
    Leftover(
        "refusal",
        r"\b(?:zao mi je|izvinite|izvini|izvinjavam se|oprostite|nazalost),? (?:ali )?"
        r"(?:\w{1,15} ){0,3}ne mogu (?:da )?(?:(?:vam|ti) )?(?:pomog|pomoc|pruz|napis|generis|"
        r"ispun|odgovor|nastav|uradi|kreira|izvrs)\w{0,6}(?: \w{1,15}){0,3} "
        r"(?:zahtev\w{0,3}|tim|ovim|to|taj|ovaj|ovo|clan\w{1,4}|sadrzaj\w{0,2}|tekst\w{0,2})\b"
        r"|^(?:zao mi je|izvinite|izvinjavam se),? ali ne mogu (?:da )?(?:vam |ti )?pomo[cg]"
        r"|\bne mogu (?:da )?(?:ispun|izvrs)\w{1,5} (?:vas|tvoj|taj|ovaj|ovakav) zahtev\b",
        "The model refused: write the article or take the passage out.",
    ),
    Leftover(
        "chat_preamble",
        r"^(?:naravno|svakako|rado|vazi|u redu|odlicno|razumem|apsolutno)[!,.:–—] ?"
        rf"(?:evo|u nastavku|ispod|ovo je|izvolite)\b[^.!?\n]{{0,100}}\b{_WRITTEN}\b"
        r"|^evo (?:vam )?(?:vas|tvoj|trazen|komplet|revidiran|azuriran|preradjen|"
        rf"optimizovan|ispravljen)\w{{0,4}} (?:\w{{1,20}} ){{0,3}}{_WRITTEN}\b"
        rf"|^(?:evo|u nastavku je|ispod je) {_WRITTEN}\b[^.!?:\n]{{0,120}}(?::$|\bkoji ste trazili)"
        r"|^(?:odlicno|sjajno|dobro) pitanje!",
        "Remove what the model says to its user before the text.",
    ),
    Leftover(
        "chat_closing",
        r"\bnadam se da (?:(?:vam |ti )?ovo (?:pomaze|ce pomoci|odgovara)"
        r"|(?:vam |ti )?je (?:ovo )?(?:pomoglo|bilo od pomoci|od pomoci)"
        r"|ce (?:vam |ti )?ovo (?:pomoci|biti od pomoci|koristiti))"
        r"|\bjavi(?:te)?(?: mi)? (?:ako|ukoliko) "
        r"(?:zelite|zelis|treba|vam treba|je potrebno|hocete)[^.!?\n]{0,80}\b"
        r"(?:prilagod|izmen|promen|dodam|skrat|prosir|prerad|ton|duz|jos nesto)\w{0,6}"
        r"|\b(?:zelite|zelis) li da (?:\w{1,10} ){0,2}(?:prilagodim|izmenim|dodam|napisem|prosirim|"
        r"skratim|preradim|promenim)\b|\bda li (?:zelite|zelis) da (?:\w{1,10} ){0,2}(?:prilagodim|"
        r"izmenim|dodam|napisem|prosirim|skratim|preradim|promenim)\b"
        r"|\b(?:ako|ukoliko) (?:zelite|zelis),? mogu (?:i )?(?:da )?(?:\w{1,10} )?"
        r"(?:napis|dodam|dodati|prosir|skrat|prilagod|prerad|izmen)\w{0,6}",
        "Remove what the model says to its user after the text.",
    ),
    Leftover(
        "prompt_echo",
        r"^(?:meta opis|meta naslov|seo naslov|"
        r"(?:primarna |glavna |sporedna |fokus )?kljucn\w rec\w{0,2}|"
        r"ciljna publika|ciljna grupa|broj reci|slag) ?: ?\S"
        r"|[\[(]broj reci ?: ?\d[\d,. ]{0,12}[\])]"
        r"|^napis\w{1,4} (?:\w{1,20} ){0,3}(?:clanak|blog post|tekst)\b[^.!?\n]{0,120}\b"
        r"(?:\d{2,5} reci|kljucn\w{1,2} rec\w{0,3})\b",
        "Remove the part of the prompt that is repeated here.",
        paragraphs_only=True,
    ),
    Leftover(
        "injected_instruction",
        r"\b(?:ignor(?:is|ir)i(?:te)?|zanemari(?:te)?|zaboravi(?:te)?|odbaci(?:te)?) (?:sv[aei] )?"
        r"(?:moja |tvoja |vasa )?(?:prethodn|ranij|gornj|dosadasnj|postojec)\w{1,3} "
        r"(?:\w{1,20} )?(?:instrukcij|uputstv|nared|pravil|prompt|nalog)\w{0,4}",
        "A source's instruction to the model got into the text: take it out and check the source.",
    ),
)
